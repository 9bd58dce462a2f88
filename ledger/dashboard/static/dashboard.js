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
  // A page that is not followed by itself says so after a while: a state on it may be another one by now.
  const AGED = 120000;
  const loaded = Date.now();
  // Ages are of the server's clock: this machine's may be wrong.
  let offset = 0;
  const tellAges = () => {
    const aged = document.querySelector("[data-aged]");
    if (aged) aged.hidden = Date.now() - loaded < AGED || document.querySelector("[data-live]") !== null;
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
  // Nobody loses a filter that they are entering because the table below it came anew.
  const isEntering = () => {
    const form = document.querySelector("#operations form");
    if (form === null) return false;
    const given = [...form.elements].some((field) => field.tagName === "SELECT"
      ? field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected))
      : field.type === "text" && field.value !== field.defaultValue);
    return given || form.contains(document.activeElement);
  };
  setInterval(() => {
    if (!document.querySelector("[data-live]") || document.hidden) return;
    refresh();
    if (!isEntering()) document.body.dispatchEvent(new CustomEvent("operations-moved"));
  }, 3000);

  // What was said when a part of a page came anew, for who does not see it.
  const say = (words) => {
    const said = document.getElementById("said");
    if (said && said.textContent !== words) said.textContent = words;
  };

  // Parts of a page that are fetched by themselves. A fetch that fails leaves what is there, and says that it is old.
  const PARTS = "[data-live], #operations";
  const partOf = (element) => element?.closest?.(PARTS) ?? null;
  const mark = (part, isStale) => {
    for (const notice of part.querySelectorAll("[data-stale]")) notice.hidden = !isStale;
  };
  // What somebody opened to read stays open when the part around it comes anew; it is known by what it is called.
  let opened = new Set();
  const called = (details) => details.querySelector("summary")?.textContent.trim();
  const detailsOf = (parts) => [...document.querySelectorAll("#progress, #operations")].flatMap((part) => [...part.querySelectorAll(parts)]);
  // Whether somebody asked for the operations that come: what they pressed is gone when these are there.
  let isAskedFor = false;
  document.addEventListener("htmx:before:swap", (event) => {
    const source = event.detail?.ctx?.sourceElement;
    opened = new Set(detailsOf("details[open]").map(called));
    isAskedFor = source?.matches?.("#operations-next, #operations-first, #operations form") ?? false;
    const part = partOf(event.target);
    if (part === null || (event.detail?.ctx?.response?.status ?? 0) < 400) return;
    event.preventDefault();
    mark(part, true);
  });
  document.addEventListener("htmx:error", () => {
    for (const part of document.querySelectorAll(PARTS)) mark(part, true);
  });
  document.addEventListener("htmx:after:swap", () => {
    const operations = document.getElementById("operations");
    if (isAskedFor) {
      // The new table begins at its head. Whoever pressed a button that is there again is still at it; else at the table.
      operations?.scrollIntoView({ block: "start" });
      setTimeout(() => {
        if (document.activeElement === document.body) operations?.querySelector("[role=region]")?.focus({ preventScroll: true });
      });
      say(operations?.dataset.told ?? "");
    } else {
      say(document.querySelector("[data-say]")?.dataset.say ?? "");
    }
    for (const details of detailsOf("details:not([open])")) details.open = opened.has(called(details));
    tellAges();
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
    for (const button of document.querySelectorAll("[data-reload]")) button.addEventListener("click", () => location.reload());
    tellAges();
    setInterval(tellAges, 15000);
    follow();
    comeBack();
  });
})();
