// Actions: previews beside the page on wide screens, answers that do not come, signing in without losing what was typed.
(() => {
  "use strict";
  const NO_ANSWER = 10000;
  const copy = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
  const waiting = new WeakMap();

  function put(form, notice) {
    const place = form.querySelector(".lost");
    if (place) place.replaceChildren(...(notice ? [notice] : []));
  }

  function lost(form) {
    const notice = copy("part-lost");
    const action = form.querySelector("input[name=action]");
    const check = notice.querySelector("[data-fill=check]");
    if (action) check.href = `/actions/${encodeURIComponent(action.value)}/`;
    else check.remove();
    form.dataset.lost = "";
    form.setAttribute("hx-sync", "this:queue first");
    put(form, notice);
  }

  function settled(form) {
    clearTimeout(waiting.get(form));
    delete form.dataset.lost;
    form.setAttribute("hx-sync", "this:drop");
    put(form, null);
  }

  const actOf = (event) => {
    const source = event.detail.ctx?.sourceElement;
    return source?.matches?.("form[data-acts]") ? source : null;
  };

  document.addEventListener("htmx:before:request", (event) => {
    const form = actOf(event);
    if (form) waiting.set(form, setTimeout(() => lost(form), NO_ANSWER));
  });

  document.addEventListener("htmx:after:request", (event) => {
    const form = actOf(event);
    if (form) settled(form);
  });

  // The connection broke: the same as no answer, and known at once.
  document.addEventListener("htmx:error", (event) => {
    const form = actOf(event);
    if (!form || event.detail.ctx.response) return;
    clearTimeout(waiting.get(form));
    lost(form);
  });

  // Pressing again: give up waiting for the first answer. The action id is the same, so it counts once.
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.lost !== undefined) htmx.trigger(event.target, "htmx:abort", {}, false);
  }, true);

  // 5xx is never swapped in (see the htmx configuration); what was typed stays.
  document.addEventListener("htmx:response:error", (event) => {
    const {ctx} = event.detail;
    if (ctx.response.status < 500) return;
    const request = ctx.response.headers.get("Request-Id") || "";
    const form = actOf(event);
    if (form) {
      const notice = copy(ctx.response.status === 503 ? "part-away" : "part-broke");
      notice.querySelector("[data-fill=request]")?.replaceChildren(request);
      setTimeout(() => put(form, notice));
      return;
    }
    const panel = ctx.sourceElement?.closest?.("[data-things]");
    if (!panel || panel.querySelector(".panel-failed") || ctx.response.status === 503) return;
    const notice = copy("part-failed");
    notice.querySelector("[data-fill=things]").textContent = panel.dataset.things;
    notice.querySelector("[data-fill=request]").textContent = request;
    notice.querySelector("[data-again]").href = location.href;
    panel.prepend(notice);
  });

  document.addEventListener("htmx:before:swap", (event) => {
    const {ctx} = event.detail;
    if (ctx.response?.status === 401) {
      const slot = document.getElementById("sign-in-slot");
      // A poll must not wipe a half-typed password.
      if (slot.querySelector("form") && ctx.sourceElement?.closest?.("#sign-in-slot") === null) event.preventDefault();
      return;
    }
    ctx.sourceElement?.closest?.("[data-things]")?.querySelector(".panel-failed")?.remove();
  });

  document.addEventListener("recourse:signed-in", (event) => {
    const {token, person} = event.detail;
    if (person !== document.documentElement.dataset.person) {
      location.reload();
      return;
    }
    for (const field of document.querySelectorAll("input[name=csrfmiddlewaretoken]")) field.value = token;
    document.body.setAttribute("hx-headers:inherited", JSON.stringify({"X-CSRFToken": token}));
    window.recourse.refetchAll(500);
  });

  // A preview is a page. Beside it there is room from 900 px on: then it comes into the reserved panel.
  const wide = matchMedia("(width >= 900px)");
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-preview]");
    const panel = document.getElementById("action");
    if (!link || !panel || !wide.matches || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    htmx.ajax("GET", link.getAttribute("href"), {target: "#action", swap: "innerHTML"}).then(() => {
      panel.querySelector("h2")?.focus();
    });
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    window.recourse.announce(window.recourse.words.copied);
  });
})();
