"use strict";
// Everything can be read without this: it only puts in what has changed since the page was loaded.
const { watch, seen } = document.body.dataset;
const connection = document.getElementById("connection");
let last = seen;

function put(html) {
  const live = document.getElementById("live");
  const made = new DOMParser().parseFromString(html, "text/html");
  const parts = [...made.body.querySelectorAll("[data-part]")];
  const shape = (root) => [...root.querySelectorAll("[data-part]")].map((part) => part.dataset.part).join();
  if (shape(live) !== shape(made.body) || made.querySelector(".stale") || live.querySelector(".stale")) {
    live.replaceChildren(...made.body.childNodes);
    return;
  }
  // Part by part, so that the keyboard's place, scrolling and what is unfolded stay where nothing changed.
  for (const part of parts) {
    const old = live.querySelector(`[data-part="${part.dataset.part}"]`);
    if (old.isEqualNode(part)) continue;
    const place = [...old.querySelectorAll("a, summary, [tabindex]")].indexOf(document.activeElement);
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    old.replaceWith(part);
    part.querySelectorAll("details").forEach((one, number) => { one.open = open[number] ?? one.open; });
    if (place >= 0) part.querySelectorAll("a, summary, [tabindex]")[place]?.focus({ preventScroll: true });
  }
}

function listen() {
  const source = new EventSource(`/events?page=${encodeURIComponent(watch)}&seen=${last}`);
  source.addEventListener("open", () => { connection.textContent = ""; });
  source.addEventListener("live", (event) => {
    last = event.lastEventId;
    put(JSON.parse(event.data));
  });
  source.addEventListener("error", () => {
    connection.textContent = "Connection lost. The page may be out of date; trying again.";
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  });
}

if (watch) listen();
