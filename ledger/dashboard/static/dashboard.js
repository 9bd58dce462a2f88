// The little that the pages do themselves. Everything works without it; nothing here writes markup.
"use strict";

(() => {
  const root = document.documentElement;

  // Light or dark: as the system says, or as was chosen here before. Before anything is drawn.
  const THEMES = ["system", "light", "dark"];
  let theme = "system";
  try { theme = localStorage.getItem("theme") ?? "system"; } catch { /* a browser that keeps nothing */ }
  const applyTheme = () => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
    document.dispatchEvent(new CustomEvent("theme"));
  };
  applyTheme();

  const offerThemes = () => {
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      const tell = () => {
        button.textContent = `Theme: ${theme}`;
      };
      tell();
      button.hidden = false;
      button.addEventListener("click", () => {
        theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
        try { localStorage.setItem("theme", theme); } catch { /* then until the page is left */ }
        applyTheme();
        tell();
      });
    }
  };

  // "3 min ago" stays true while a page is open.
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const ago = (seconds) => {
    if (seconds < 1) return "just now";
    const first = UNITS.findIndex(([size]) => seconds >= size);
    const parts = [];
    let rest = Math.round(seconds);
    for (const [size, unit] of UNITS.slice(first, first + 2)) {
      const count = Math.floor(rest / size);
      rest -= count * size;
      if (count) parts.push(`${count.toLocaleString("en")} ${unit}`);
    }
    return `${parts.join(" ")} ago`;
  };
  // Ages are of the server's clock: this machine's may be wrong.
  let offset = 0;
  const tellAges = () => {
    for (const time of document.querySelectorAll("time[data-ago]")) {
      time.textContent = ago(Math.max(0, (Date.now() + offset - Date.parse(time.dateTime)) / 1000));
    }
  };

  // A part of a page that follows a run. It is fetched again when the ledger says that something happened, and now and
  // then where it says nothing; not while nobody can see it.
  const LEAST = 700;
  let last = 0;
  let due = null;
  const refresh = () => {
    if (document.hidden || due !== null) return;
    due = setTimeout(() => {
      due = null;
      last = Date.now();
      document.body.dispatchEvent(new CustomEvent("ledger-moved"));
    }, Math.max(0, LEAST - (Date.now() - last)));
  };
  let stream = null;
  let wasLive = false;
  const follow = () => {
    const live = document.querySelector("[data-live]");
    if (live === null || document.hidden) {
      stream?.close(); // a browser has few connections for all its tabs
      stream = null;
      return;
    }
    wasLive = true;
    if (stream === null && live.dataset.stream) {
      stream = new EventSource(live.dataset.stream);
      for (const kind of live.dataset.kinds.split(" ")) stream.addEventListener(kind, refresh);
    }
  };
  setInterval(() => {
    if (document.querySelector("[data-live]")) refresh();
  }, 3000);

  // What was said when a part of a page came anew, for who does not see it.
  const say = () => {
    const said = document.getElementById("said");
    const words = document.querySelector("[data-say]")?.dataset.say ?? "";
    if (said && said.textContent !== words) said.textContent = words;
  };

  // A fetch that fails leaves what is there, and says that it is old.
  document.addEventListener("htmx:before:swap", (event) => {
    const status = event.detail?.ctx?.response?.status ?? 0;
    const stale = status >= 400 && event.target.closest?.("[data-live]");
    if (stale) event.preventDefault();
    for (const notice of document.querySelectorAll("[data-stale]")) notice.hidden = !stale;
  });
  document.addEventListener("htmx:error", () => {
    if (document.querySelector("[data-live]")) {
      for (const notice of document.querySelectorAll("[data-stale]")) notice.hidden = false;
    }
  });
  document.addEventListener("htmx:after:swap", () => {
    for (const notice of document.querySelectorAll("[data-stale]")) notice.hidden = true;
    tellAges();
    say();
    follow();
    if (wasLive && document.querySelector("[data-live]") === null) {
      wasLive = false;
      document.body.dispatchEvent(new CustomEvent("run-ended"));
    }
    document.dispatchEvent(new CustomEvent("drawn"));
  });
  document.addEventListener("visibilitychange", () => {
    follow();
    if (document.querySelector("[data-live]")) refresh();
  });

  // A link from elsewhere comes without the cookie of a session that is there; from here it goes along.
  const comeBack = async () => {
    if (document.querySelector("[data-login]") === null) return;
    try {
      const answer = await fetch(location.href, { redirect: "manual" });
      if (answer.type === "opaqueredirect") location.replace(location.href);
    } catch { /* then one logs in */ }
  };

  document.addEventListener("DOMContentLoaded", () => {
    const made = document.querySelector(".bottom time");
    if (made) offset = Date.parse(made.dateTime) - Date.now();
    offerThemes();
    tellAges();
    setInterval(tellAges, 15000);
    follow();
    comeBack();
  });
})();
