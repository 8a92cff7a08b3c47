// Times that age on the page: the same rules as console/when.py, from <time datetime data-clock>. Unannounced.
(() => {
  "use strict";
  const words = JSON.parse(document.getElementById("script-words").textContent);
  const fill = (text, facts) => text.replace(/\{(\w+)\}/g, (whole, name) => facts[name] ?? whole);

  function span(seconds) {
    const total = Math.trunc(Math.abs(seconds));
    const minutes = Math.trunc(total / 60), hours = Math.trunc(total / 3600), days = Math.trunc(total / 86400);
    let form = "d";
    if (total < 60) form = "s";
    else if (total < 120) form = total % 60 ? "ms" : "m";
    else if (hours < 1) form = "m";
    else if (hours < 24) form = minutes % 60 ? "hm" : "h";
    else if (days < 2) form = "h";
    else if (hours % 24) form = "dh";
    return fill(words.spans[form], {s: total % 60, m: minutes % 60, h: form === "dh" ? hours % 24 : hours, d: days});
  }

  function phrase(kind, ahead) {
    if (kind === "in" && ahead < 0) kind = "past";
    if (kind === "due" && ahead < 0) kind = "late";
    return fill(words.kinds[kind], {span: span(ahead)});
  }

  // The server's clock counts: a wrong clock of this device must not move a deadline.
  let skew = 0;
  const now = () => Date.now() + skew;
  const sync = (iso) => { skew = Date.parse(iso) - Date.now(); };
  const asOf = document.getElementById("as-of");
  if (asOf) sync(asOf.dateTime);

  function clock(moment) {
    return new Intl.DateTimeFormat("en-GB", {
      hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
      timeZone: document.documentElement.dataset.zone || undefined,
    }).format(moment);
  }

  let ticks = 0;
  function tick() {
    const all = ticks++ % 30 === 0;
    for (const element of document.querySelectorAll("time[data-clock]")) {
      const ahead = (Date.parse(element.dateTime) - now()) / 1000;
      if (!all && Math.abs(ahead) > 121) continue;
      const said = phrase(element.dataset.clock, ahead);
      if (element.textContent !== said) element.textContent = said;
    }
  }
  setInterval(tick, 1000);

  document.addEventListener("htmx:after:process", () => {
    for (const element of document.querySelectorAll("time[data-here]")) {
      element.textContent = clock(new Date(element.dateTime));
    }
  });

  window.recourse = {words, fill, span, phrase, clock, now, tick, sync};
})();
