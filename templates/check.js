"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PER_PAGE = 100;
  const ON_PAPER = 1000;
  let printing = false;
  const SIGNS = { block: "■", warn: "▲", info: "●", unknown: "○" };
  const [NAME, FOLDER, SHAPE, MEMORY, HOST, CLUSTER, RELEASE, GUEST, WORST, FINDINGS, UNSEEN, PASSED, UUID] = [...Array(13).keys()];
  const [RULE, SEVERITY, ABOUT, OBSERVED, FIX, PASTES, COMMANDS, MATTERS, FIRST, WAIVED, CHANGE, ARM] = [...Array(12).keys()];
  const at = (id) => document.getElementById(id);
  const rows = at("rows");
  // What is searched: a VM's own words, and those of its findings and reasons, which many VMs share.
  const haystacks = data.vms.map((vm) => [vm[NAME], vm[FOLDER], vm[SHAPE], vm[HOST], vm[CLUSTER], vm[RELEASE], vm[GUEST]].join("\n").toLowerCase());
  const evidence = data.findings.map((finding) => [
    finding[RULE], data.rules[finding[RULE]][0], finding[ABOUT], finding[OBSERVED].flat().join(" "), finding[FIX],
    finding[PASTES].flat().join(" "), finding[COMMANDS], finding[MATTERS], finding[WAIVED], finding[ARM],
  ].join("\n").toLowerCase());
  const reasons = data.unseen.map((list) => list.flat(2).join("\n").toLowerCase());
  const says = (vm, index, word) => haystacks[index].includes(word)
    || vm[FINDINGS].some((n) => evidence[n].includes(word)) || reasons[vm[UNSEEN]].includes(word);
  const filters = { block: true, warn: true, info: true, pass: true, unknown: true, new: false, unseen: false };
  const ONLY = ["new", "unseen"]; // these narrow the list when pressed; the others widen it
  let rule = "";
  let page = 0;

  const element = (tag, classes, text) => {
    const made = document.createElement(tag);
    if (classes) made.className = classes;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const severityMark = (severity) => {
    const mark = element("span", `sv ${severity}`);
    const sign = element("span", "", `${SIGNS[severity]} `);
    sign.setAttribute("aria-hidden", "true");
    mark.append(sign, element("span", "vh", severity));
    return mark;
  };

  const chip = (finding) => {
    const made = element("span", `chip ${finding[WAIVED] ? "waived" : finding[SEVERITY]}`);
    const sign = element("span", "", `${SIGNS[finding[SEVERITY]]} `);
    sign.setAttribute("aria-hidden", "true");
    made.append(sign, element("span", "vh", finding[WAIVED] ? "waived " : `${finding[SEVERITY]} `), finding[RULE]);
    if (finding[CHANGE] === "new") made.append(" ", element("span", "tag", "new"));
    return made;
  };

  const part = (heading, ...content) => {
    const made = element("div");
    made.append(element("h4", "", heading), ...content);
    return made;
  };

  // What a finding's fix is in a tool, folded, with a button that copies it.
  const paste = ([tool, shared], vm) => {
    const text = shared.replaceAll("VM-UUID", vm[UUID]);
    const made = element("details", "paste");
    const copy = element("button", "", "Copy");
    copy.type = "button";
    copy.hidden = !navigator.clipboard;
    copy.setAttribute("aria-label", `Copy the fix for ${tool}`);
    copy.addEventListener("click", () => navigator.clipboard.writeText(text).then(
      () => { copy.textContent = "Copied"; },
      () => { copy.textContent = "Select the text and copy it"; },
    ));
    made.append(element("summary", "", tool), element("pre", "", text), copy);
    return made;
  };

  const details = (finding, vm) => {
    const [title, consequence, source] = data.rules[finding[RULE]];
    const made = element("div", `f ${finding[WAIVED] ? "waived" : finding[SEVERITY]}`);
    const heading = element("h3");
    heading.append(severityMark(finding[SEVERITY]), finding[SEVERITY], ` · ${title} `, element("span", "id", finding[RULE]));
    if (finding[CHANGE] === "new") heading.append(" ", element("span", "tag", "new"));
    made.append(heading);
    if (finding[ABOUT]) made.append(element("p", "mu", `On ${finding[ABOUT]}`));
    if (finding[ARM]) made.append(element("p", "mu", `In arm ${finding[ARM]}`));
    if (finding[WAIVED]) made.append(element("p", "now", `Accepted: ${finding[WAIVED]}`));
    else if (finding[MATTERS]) made.append(element("p", "now", finding[MATTERS]));
    const observed = element("dl");
    for (const [name, value] of finding[OBSERVED]) observed.append(element("dt", "", name), element("dd", "", value));
    const fix = part("Fix", element("p", "", finding[FIX]));
    for (const one of finding[PASTES]) fix.append(paste(one, vm));
    if (finding[COMMANDS]) fix.append(element("pre", "", finding[COMMANDS]));
    const grid = element("div", "fg");
    grid.append(part("Observed", observed), part("Consequence", element("p", "", consequence)), fix);
    made.append(grid);
    const line = element("p", "src", "Source: ");
    if (/^https?:\/\//.test(source)) {
      const link = element("a", "", source);
      link.href = source;
      line.append(link);
    } else line.append(source);
    line.append(" · ", element("code", "", `vnuma check --explain ${finding[RULE]}`));
    made.append(line);
    return made;
  };

  const body = (vm) => {
    const made = element("div", "body");
    made.append(element("p", "mu", `${vm[FOLDER]}/${vm[NAME]} · ${vm[PASSED]} rules passed`));
    for (const number of vm[FINDINGS]) made.append(details(data.findings[number], vm));
    const unseen = data.unseen[vm[UNSEEN]];
    if (unseen.length) {
      const list = element("ul", "plain");
      for (const [why, rules] of unseen) list.append(element("li", "", `○ ${rules.join(" ")}: ${why}`));
      made.append(part("Not evaluated", list));
    }
    return made;
  };

  const shown = new WeakMap(); // row -> its VM
  const unfold = (made, vm) => {
    if (made.childElementCount === 1) made.append(body(vm));
    made.open = true;
  };

  const row = (vm) => {
    const made = element("details", "vm");
    const summary = element("summary");
    const cells = ["c1", "c2", "c3", "c4", "c5"].map((name) => element("span", name));
    if (vm[WORST]) cells[0].append(severityMark(vm[WORST]));
    cells[0].append(element("b", "", vm[NAME]));
    cells[1].append(vm[SHAPE], element("span", "mu", vm[MEMORY] && ` · ${vm[MEMORY]}`));
    cells[2].append(vm[HOST], element("span", "mu", [vm[CLUSTER], vm[RELEASE]].filter(Boolean).map((text) => ` · ${text}`).join("")));
    if (vm[GUEST]) cells[3].append(vm[GUEST].includes("not") ? element("b", "", vm[GUEST]) : vm[GUEST]);
    for (const number of vm[FINDINGS]) cells[4].append(chip(data.findings[number]));
    summary.append(...cells);
    made.append(summary);
    made.addEventListener("toggle", () => { if (made.open) unfold(made, vm); });
    shown.set(made, vm);
    return made;
  };

  const chosen = () => {
    const words = at("find").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const cluster = at("cluster").value;
    const matches = (vm, index) => {
      if (words.length) return words.every((word) => says(vm, index, word));
      if (cluster && vm[CLUSTER] !== cluster) return false;
      const found = vm[FINDINGS].map((number) => data.findings[number]);
      if (rule) return found.some((finding) => finding[RULE] === rule);
      if (filters.new && !found.some((finding) => finding[CHANGE] === "new")) return false;
      if (filters.unseen && !data.unseen[vm[UNSEEN]].length) return false;
      return filters[vm[WORST] || "pass"];
    };
    return data.vms.filter(matches);
  };

  const show = () => {
    const found = chosen();
    const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
    page = Math.min(page, pages - 1);
    const some = found.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
    rows.replaceChildren(...(printing ? found.slice(0, ON_PAPER) : some).map(row));
    if (!some.length) rows.append(element("p", "mu", "No matching VMs. Change the search or the filters."));
    const number = (value) => value.toLocaleString("en-US");
    at("count").textContent = `${number(found.length)} of ${number(data.vms.length)} VMs`;
    at("page").textContent = `Page ${page + 1} of ${pages}`;
    at("previous").disabled = page === 0;
    at("next").disabled = page === pages - 1;
    at("pages").hidden = pages === 1;
    for (const button of document.querySelectorAll("[data-filter]")) {
      button.setAttribute("aria-pressed", String(filters[button.dataset.filter]));
    }
    for (const button of document.querySelectorAll("[data-rule]")) {
      button.setAttribute("aria-pressed", String(button.dataset.rule === rule));
    }
    remember();
  };

  const remember = () => {
    const view = new URLSearchParams();
    if (at("find").value) view.set("find", at("find").value);
    if (at("cluster").value) view.set("cluster", at("cluster").value);
    if (rule) view.set("rule", rule);
    if (page) view.set("page", String(page + 1));
    const off = Object.keys(filters).filter((name) => !ONLY.includes(name) && !filters[name]);
    if (off.length) view.set("without", off.join(","));
    for (const name of ONLY) if (filters[name]) view.set(name, "1");
    const text = view.toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  };

  const recall = () => {
    if (!location.hash.includes("=")) return;
    const view = new URLSearchParams(location.hash.slice(1));
    at("find").value = view.get("find") || "";
    at("cluster").value = view.get("cluster") || "";
    rule = data.rules[view.get("rule")] ? view.get("rule") : "";
    page = Math.max(0, (Number.parseInt(view.get("page"), 10) || 1) - 1);
    const off = (view.get("without") || "").split(",");
    for (const name of Object.keys(filters)) filters[name] = ONLY.includes(name) ? view.get(name) === "1" : !off.includes(name);
  };

  const again = () => { page = 0; show(); };
  at("tools").addEventListener("submit", (event) => event.preventDefault());
  at("find").addEventListener("input", again);
  at("cluster").addEventListener("change", again);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-filter], [data-rule]");
    if (!button) return;
    if (button.dataset.filter) filters[button.dataset.filter] = !filters[button.dataset.filter];
    else rule = rule === button.dataset.rule ? "" : button.dataset.rule;
    again();
    if (button.dataset.rule && rule) at("list").scrollIntoView();
  });
  const turn = (step) => { page += step; show(); at("list").scrollIntoView(); };
  at("previous").addEventListener("click", () => turn(-1));
  at("next").addEventListener("click", () => turn(1));
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing) { event.preventDefault(); at("find").focus(); }
    if (event.key === "Escape" && event.target === at("find")) { at("find").value = ""; again(); }
  });
  for (const event of ["beforeprint", "afterprint"]) {
    window.addEventListener(event, () => { printing = event === "beforeprint"; show(); });
  }
  window.addEventListener("hashchange", () => { recall(); show(); });

  recall();
  at("tools").hidden = false;
  show();
})();
