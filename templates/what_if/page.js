// The form, the address and the answer. What is right is decided by Python, behind ask().
import * as backend from "./ask.js";

const form = document.getElementById("question");
const status = document.getElementById("status");
const found = document.getElementById("found");
const WORTH = { having: "Worth having", testing: "Worth testing", avoiding: "To avoid" };
const model = document.getElementById("model");
let tool = "PowerCLI";

function el(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== ""));
  return made;
}

function question() {
  return Object.fromEntries(new FormData(form));
}

function fill(asked) {
  for (const field of form.elements) {
    if (!field.name || !asked.has(field.name)) continue;
    if (field.type === "checkbox") field.checked = asked.get(field.name) === field.value;
    else if (field.tagName === "SELECT") choose(field, asked.get(field.name));
    else field.value = asked.get(field.name);
  }
}

function choose(field, value) {
  if (![...field.options].some((option) => option.value === value)) field.add(new Option(value));
  field.value = value;
}

function suggestDivisors(vcpus) {
  const sizes = ["auto"];
  for (let size = 1; size <= vcpus && vcpus <= 960; size += 1) if (vcpus % size === 0) sizes.push(size);
  document.getElementById("divisors").replaceChildren(...sizes.map((size) => el("option", { value: size })));
}

let running = false;
let again = false;

async function update() {
  nameModel();
  history.replaceState(null, "", `?${new URLSearchParams(question())}`);
  suggestDivisors(Number(form.elements.vcpus.value));
  if (running) {
    again = true;
    return;
  }
  running = true;
  do {
    again = false;
    const width = Math.max(280, Math.min(760, Math.floor(found.clientWidth || status.clientWidth) - 2));
    try {
      show(await backend.ask({ ...question(), width: String(width) }));
    } catch (error) {
      wrong(error.message, "");
    }
  } while (again);
  running = false;
}

function wrong(what, fix) {
  status.className = "wrong";
  status.textContent = `${what} ${fix}`.trim();
  found.replaceChildren();
}

function show(answer) {
  if (answer.error) return wrong(answer.error, answer.fix);
  status.className = "";
  const first = answer.layouts[0];
  status.replaceChildren(el("span", { className: "spoken", textContent: sentence(first) }));
  found.replaceChildren(
    ...answer.layouts.flatMap((layout) => layoutParts(layout, answer.vm)),
    ...shapes(answer),
    ...rules(answer.findings),
    ...code(answer.as),
    notEvaluated(answer.not_evaluated),
  );
  return undefined;
}

function sentence(layout) {
  const [sizes, count] = [layout.sizes, layout.sizes.length];
  const alike = sizes.every((size) => size === sizes[0]);
  const nodes = `${count} NUMA node${count === 1 ? "" : "s"}`;
  if (layout.impossible) return "This VM cannot run there.";
  return layout.swaps
    ? "This VM does not fit there without swapping; with all its memory reserved it does not power on."
    : `The guest sees ${nodes} of ${alike ? sizes[0] : sizes.join(" + ")} vCPU${alike && sizes[0] === 1 ? "" : "s"}.`;
}

function layoutParts(layout, vm) {
  const figure = el("figure");
  figure.innerHTML = layout.svg; // made by vnuma, every text in it escaped
  const save = el("button", { type: "button", textContent: "Download as SVG" });
  save.addEventListener("click", () => download(layout.svg, `${form.elements.name.value || "vm"}.svg`));
  const print = el("button", { type: "button", textContent: "Print on A4" });
  print.addEventListener("click", () => window.print());
  const counts = layout.alternatives;
  const others = counts.length ? `, else ${counts.join(" or ")} node${counts.at(-1) === 1 ? "" : "s"}` : "";
  const sure = el("strong", { className: layout.confidence, textContent: `${layout.confidence} confidence${others}` });
  return [
    el("h2", { className: "sentence", textContent: sentence(layout) }),
    el("p", { className: "note" }, `${vm}, on ${layout.hosts.join(", ")}: `, sure),
    el("ul", { className: "reasons" }, ...layout.reasons.map((reason) => el("li", { textContent: upper(reason) }))),
    figure,
    el("p", { className: "buttons" }, save, print),
  ];
}

function upper(text) {
  if (/^v[A-Z]/.test(text)) return text; // vCPUs, vNUMA
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function rules(broken) {
  const told = broken.filter((finding) => finding.severity !== "info");
  const rest = broken.filter((finding) => finding.severity === "info");
  const head = el("h2", { textContent: told.length ? `Design rules broken: ${told.length}` : "No design rule is broken" });
  const more = rest.length
    ? [el("details", {}, el("summary", { textContent: `For information: ${rest.length}` }), ruleList(rest))]
    : [];
  return [head, ...(told.length ? [ruleList(told)] : []), ...more];
}

function ruleList(broken) {
  return el("ul", { className: "rules" }, ...broken.map(rule));
}

function rule(finding) {
  const where = finding.hosts.length ? ` (${finding.hosts.join(", ")})` : "";
  const source = el("a", { href: finding.source, textContent: "Source", rel: "noreferrer" });
  return el("li", {},
    el("p", {},
      el("span", { className: `severity ${finding.severity}`, textContent: `${finding.rule} ${finding.severity}` }),
      ` ${finding.title}${where}`),
    el("p", { className: "note", textContent: finding.observed }),
    el("p", { textContent: finding.consequence }),
    el("p", {}, el("strong", { textContent: "Fix: " }), `${finding.fix} `, source),
    finding.assumed ? el("p", { className: "note", textContent: upper(finding.assumed) }) : "");
}

function shapes(answer) {
  const good = answer.candidates.filter((candidate) => candidate.worth !== "avoiding");
  const rest = answer.candidates.filter((candidate) => candidate.worth === "avoiding");
  const others = answer.other_vcpus.length
    ? [el("p", { textContent: `These vCPUs cannot be spread evenly over the nodes needed; ${answer.other_vcpus.join(" or ")} can.` })]
    : [];
  return [
    el("h2", { textContent: "Shapes of this size" }),
    ...[...answer.advice.map((text) => el("p", { textContent: text })), ...others],
    ...(good.length ? [shapeTable(good)] : []),
    ...(rest.length ? [el("details", {}, el("summary", { textContent: `To avoid: ${rest.length}` }), shapeTable(rest))] : []),
  ];
}

function shapeTable(candidates) {
  const heads = ["Shape", "vNUMA nodes", "Advice", "Why"].map((text) => el("th", { scope: "col", textContent: text }));
  const head = el("tr", {}, ...heads, el("td"));
  return el("div", { className: "scroll" },
    el("table", { className: "shapes" }, el("thead", {}, head), el("tbody", {}, ...candidates.map(shapeRow))));
}

function shapeRow(candidate) {
  const use = el("button", { type: "button", textContent: "Use", ariaLabel: `Use ${candidate.topology}` });
  use.addEventListener("click", () => take(candidate));
  const settings = candidate.settings.map((setting) => `Set ${setting}`);
  const why = [...candidate.reasons, ...settings].map((reason) => el("li", { textContent: upper(reason) }));
  return el("tr", {},
    el("th", { scope: "row", textContent: candidate.topology }),
    el("td", { textContent: `${candidate.nodes} node${candidate.nodes === 1 ? "" : "s"}` }),
    el("td", { textContent: WORTH[candidate.worth], className: candidate.worth }),
    el("td", { className: "why" }, el("ul", {}, ...why)),
    el("td", {}, use));
}

function take(candidate) {
  form.elements.per_socket.value = candidate.per_socket;
  form.elements.set.value = candidate.set;
  document.getElementById("answer").focus();
  update();
}

function code(tools) {
  const text = el("pre", { tabIndex: 0, ariaLabel: "Code", textContent: tools[tool] });
  const copy = el("button", { type: "button", textContent: "Copy" });
  copy.addEventListener("click", () => copied(text.textContent, copy));
  const choices = Object.keys(tools).map((name) => {
    const choice = el("button", { type: "button", textContent: name, ariaPressed: String(name === tool) });
    choice.addEventListener("click", () => {
      tool = name;
      text.textContent = tools[name];
      choices.forEach((one) => { one.ariaPressed = String(one === choice); });
    });
    return choice;
  });
  return [
    el("section", { className: "code" },
      el("h2", { textContent: "This VM as code" }),
      el("p", { className: "buttons", role: "group", ariaLabel: "Tool" }, ...choices, copy),
      text),
  ];
}

function notEvaluated(reasons) {
  const count = reasons.reduce((sum, reason) => sum + reason.rules.length, 0);
  return el("details", {},
    el("summary", { textContent: `Not evaluated: ${count} rules that need more than this form` }),
    el("ul", {}, ...reasons.map((reason) => el("li", { textContent: `${reason.rules.join(" ")}: ${reason.why}` }))));
}

async function copied(text, button) {
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "The browser refuses to copy";
  }
  setTimeout(() => { button.textContent = name; }, 2000);
}

function download(svg, name) {
  const link = el("a", { href: URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

// A file is judged only where Python runs in this browser.
const MOST_BYTES = 60_000_000;

async function judgeFile(file) {
  const judged = document.getElementById("judged");
  const say = (text) => judged.replaceChildren(el("p", { className: "wrong", textContent: text }));
  if (!file) return;
  if (file.size > MOST_BYTES) {
    say(`${file.name} is larger than ${MOST_BYTES / 1e6} MB. Check it with vnuma check FILE.`);
    return;
  }
  judged.replaceChildren(el("p", { textContent: `Reading ${file.name} …` }));
  try {
    const found = await backend.judge(file, question());
    if (found.error) say(`${found.error} ${found.fix}`);
    else judged.replaceChildren(...verdicts(found));
    judged.scrollIntoView();
  } catch (error) {
    say(`${file.name} could not be judged: ${error.message}`);
  }
}

function verdicts(found) {
  const heads = ["VM", "Shape", "Host", "Broken rules"].map((text) => el("th", { scope: "col", textContent: text }));
  const more = found.left_out ? [`${found.left_out} more VMs are not listed.`] : [];
  const bad = found.vms.filter(broken).length;
  const unknown = found.vms.filter((vm) => vm.undecided && !broken(vm)).length;
  const little = unknown ? [`Too little is known about ${unknown} others, so they do not pass.`] : [];
  const unseen = found.unseen.length ? [el("details", {},
    el("summary", { textContent: `What could not be read: ${found.unseen.length}` }),
    el("ul", {}, ...found.unseen.map((text) => el("li", { textContent: upper(text) }))))] : [];
  return [
    el("h2", { textContent: `${found.file}: ${bad} of ${found.vms.length} VMs break a rule` }),
    ...[...little, `Read as ${found.kind}.`, ...more].map((text) => el("p", { className: "note", textContent: text })),
    ...unseen,
    el("div", { className: "scroll" },
      el("table", { className: "judged" },
        el("thead", {}, el("tr", {}, ...heads, el("td"))),
        el("tbody", {}, ...found.vms.map(verdict)))),
  ];
}

function broken(vm) {
  return vm.findings.some((finding) => finding.severity !== "info");
}

function verdict(vm) {
  const draw = el("button", { type: "button", textContent: "Draw", ariaLabel: `Draw ${vm.name}` });
  draw.addEventListener("click", () => {
    form.reset();
    fill(new URLSearchParams(vm.question));
    document.getElementById("answer").scrollIntoView();
    document.getElementById("answer").focus();
  });
  const count = (severity) => vm.findings.filter((finding) => finding.severity === severity).length;
  const counts = ["block", "warn", "info"].filter(count).map((severity) => `${count(severity)} ${severity}`);
  const found = vm.findings.length
    ? el("details", {}, el("summary", { textContent: counts.join(", ") }), ruleList(vm.findings))
    : vm.undecided ? "not judged" : "none";
  return el("tr", {},
    el("th", { scope: "row", textContent: vm.name }),
    el("td", { textContent: vm.shape }),
    el("td", { textContent: vm.host }),
    el("td", {}, found),
    el("td", {}, draw));
}

if (backend.judge) {
  const drop = document.getElementById("drop");
  drop.hidden = false;
  document.getElementById("file").addEventListener("change", (event) => judgeFile(event.target.files[0]));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop") judgeFile(event.dataTransfer.files[0]);
    });
  }
}

// A processor fills in its numbers; other numbers typed afterwards deselect it.
function takeModel() {
  if (model.value) [form.elements.nodes.value, form.elements.cores.value] = model.value.split("x");
}

function nameModel() {
  const host = `${form.elements.nodes.value}x${form.elements.cores.value}`;
  if (model.value !== host) model.value = [...model.options].some((one) => one.value === host) ? host : "";
}

fill(new URLSearchParams(location.search));
model.addEventListener("input", takeModel); // before the form's own listener
form.addEventListener("input", update);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(update));
document.getElementById("share").addEventListener("click", (event) => copied(location.href, event.currentTarget));
status.textContent = "Loading …";
backend.ready.then(update, (error) => wrong(error.message, ""));
