"use strict";
// Everything on the page works without this: it only adds a copy button.
for (const answer of document.querySelectorAll(".answer")) {
  const button = answer.querySelector("button");
  const status = answer.querySelector("[role=status]");
  const text = [".sentence", ".scope"].map((part) => answer.querySelector(part).textContent.trim()).join("\n");
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(text).then(
      () => { status.textContent = "Copied."; },
      () => { status.textContent = "The browser does not allow it: select the text and copy it."; },
    );
  });
}
