// Single keys: they move or open, none decides. Dead inside fields; off when the account says so (WCAG 2.2, 2.1.4).
(() => {
  "use strict";
  const root = document.documentElement;
  if (root.dataset.keys === "off") return;
  const list = document.getElementById("keys");
  let after = "", timer = 0, at = null;

  const rows = () => [...document.querySelectorAll("[data-row]")];

  function move(step) {
    const all = rows();
    if (!all.length) return;
    const present = all.findIndex((row) => row === at || row.contains(document.activeElement));
    const wanted = all[Math.min(all.length - 1, Math.max(0, present < 0 ? 0 : present + step))];
    at?.removeAttribute("data-at");
    at = wanted;
    at.setAttribute("data-at", "");
    (at.querySelector("[data-open]") ?? at).focus();
  }

  function times() {
    const clock = root.dataset.times === "clock";
    if (clock) delete root.dataset.times;
    else root.dataset.times = "clock";
    window.recourse.announce(clock ? window.recourse.words.relative : window.recourse.words.absolute);
  }

  const inField = (target) => target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || inField(event.target)) return;
    const key = event.key;
    if (after === "g") {
      after = "";
      document.querySelector(`.places [data-key="${CSS.escape(key)}"]`)?.click();
      return;
    }
    if (key === "g") {
      after = "g";
      clearTimeout(timer);
      timer = setTimeout(() => { after = ""; }, 1500);
    } else if (key === "?" || (key === "Escape" && !list.hidden)) {
      list.hidden = key === "Escape" ? true : !list.hidden;
      if (!list.hidden) list.focus();
    } else if (key === "j") move(1);
    else if (key === "k") move(-1);
    else if (key === "Enter" && at && document.activeElement === at) at.querySelector("[data-open]")?.click();
    else if (key === "c") (at ?? document).querySelector("[data-claim]")?.click();
    else if (key === "t") times();
  });
})();
