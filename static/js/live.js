// The live channel. The socket says what changed; each listening element fetches itself again. See console/live.py.
(() => {
  "use strict";
  const {words, fill, clock, sync} = window.recourse;
  const status = document.getElementById("status");
  const said = document.getElementById("status-words");
  const asOf = document.getElementById("as-of");
  const region = document.getElementById("announce");
  const QUIET = 25000;  // no word from the socket for so long: it is not there
  const GRACE = 2000;   // a reconnect that is faster than this says nothing
  const POLL = 15000;

  let socket = null, heard = 0, opened = 0, channel = "none", away = false, downSince = 0;
  let subscribed = new Set();
  let announced = -10000, next = null;

  // At most one sentence in ten seconds; the newest wins.
  function announce(sentence) {
    clearTimeout(next);
    next = setTimeout(() => {
      announced = Date.now();
      region.textContent = sentence;
    }, Math.max(0, announced + 10000 - Date.now()));
  }

  function show(state) {
    const changed = channel !== state;
    channel = state;
    status.dataset.channel = state;
    const stopped = fill(words.stopped, {clock: asOf.textContent});
    said.textContent = away ? words.away : state === "live" ? words.live : stopped;
    if (changed && opened > 0 && state === "down") announce(said.textContent);
    if (changed && opened > 1 && state === "live") announce(words.back);
  }

  function listeners(name) {
    return document.querySelectorAll(name ? `[data-live~="${CSS.escape(name)}"]` : "[data-live]");
  }

  // Jitter: five hundred pages that hear the same change must not ask in the same millisecond.
  function refetch(element, spread) {
    setTimeout(() => {
      if (element.isConnected && element.hasAttribute("hx-get")) htmx.trigger(element, "live", {}, false);
    }, Math.random() * spread);
  }

  function refetchAll(spread) {
    for (const element of listeners()) refetch(element, spread);
  }

  function subscribe() {
    if (!socket || socket.readyState !== WebSocket.OPEN) return;
    const wanted = [];
    for (const element of document.querySelectorAll("[data-topic]")) {
      const name = element.dataset.live;
      if (!subscribed.has(name)) {
        subscribed.add(name);
        wanted.push(element.dataset.topic);
      }
    }
    if (wanted.length || !heard) socket.send(JSON.stringify({subscribe: wanted}));
  }

  document.addEventListener("htmx:after:ws:connection", (event) => {
    socket = event.detail.connection.socket;
    subscribed = new Set();
    heard = 0;
    opened += 1;
    subscribe();
    if (opened > 1) refetchAll(1000);
  });

  document.addEventListener("htmx:before:ws:message", (event) => {
    event.preventDefault();  // a word of this channel is never content
    const message = event.detail.message.json;
    if (!message) return;
    heard = Date.now();
    downSince = 0;
    if (message.as_of) {
      asOf.dateTime = message.as_of;
      sync(message.as_of);
      asOf.textContent = clock(new Date(message.as_of));
      away = false;
      show("live");
    } else if (message.topic) {
      for (const element of listeners(message.topic)) refetch(element, 300);
      document.dispatchEvent(new CustomEvent("recourse:changed", {detail: message}));
    }
  });

  document.addEventListener("htmx:ws:close", () => { socket = null; });
  document.addEventListener("htmx:after:process", subscribe);

  setInterval(() => {
    if (document.hidden) return;
    const here = socket && socket.readyState === WebSocket.OPEN && (!heard || Date.now() - heard < QUIET);
    if (here) return;
    downSince ||= Date.now();
    if (Date.now() - downSince > GRACE && channel !== "down") show("down");
  }, 500);

  // While the channel is down pages ask; while it is up, once a minute, since a doorbell may be lost.
  setInterval(() => {
    if (channel === "down" && !document.hidden) refetchAll(2000);
  }, POLL);
  setInterval(() => {
    if (channel === "live" && !document.hidden) refetchAll(10000);
  }, 60000);

  document.addEventListener("htmx:after:request", (event) => {
    const code = event.detail.ctx.response?.status;
    if (code === 503 && !away) {
      away = true;
      show(channel);
      announce(words.away);
    } else if (code && code < 500 && away) {
      away = false;
      show(channel);
    }
  });

  document.addEventListener("recourse:say", (event) => announce(event.detail.sentence));

  Object.assign(window.recourse, {announce, refetchAll, channel: () => channel});
})();
