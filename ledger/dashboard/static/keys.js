// Keys for lists: j and k move through rows, "/" goes to the filter, "?" tells them. They can be switched off there,
// because a single letter may mean something else to who speaks to a browser or types with one finger.
"use strict";

(() => {
  let isOn = true;
  try { isOn = localStorage.getItem("keys") !== "off"; } catch { /* a browser that keeps nothing */ }

  const isWritten = (element) => element?.closest?.("input, select, textarea, [contenteditable]") !== null;
  const links = () => [...document.querySelectorAll("main tbody tr")]
    .map((row) => row.querySelector("a[href]"))
    .filter((link) => link !== null && link.checkVisibility());

  const move = (step) => {
    const all = links();
    const at = all.findIndex((link) => link.closest("tr") === document.activeElement?.closest?.("tr"));
    const next = at === -1 ? (step > 0 ? 0 : all.length - 1) : at + step;
    all[next]?.focus();
    all[next]?.scrollIntoView({ block: "nearest" });
  };
  const filter = () => document.querySelector("main form[role=search] :is(input:not([type=hidden]), select)")?.focus();
  const help = () => document.getElementById("keys")?.showModal();

  const ACTIONS = { j: () => move(1), k: () => move(-1), "/": filter, "?": help };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isWritten(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const action = ACTIONS[event.key];
    if (action === undefined || (!isOn && event.key !== "?")) return;
    event.preventDefault();
    action();
  });

  document.addEventListener("DOMContentLoaded", () => {
    const opener = document.querySelector("[data-keys]");
    const choice = document.querySelector("#keys input");
    if (opener === null || choice === null) return;
    opener.hidden = false;
    opener.addEventListener("click", help);
    choice.checked = isOn;
    choice.addEventListener("change", () => {
      isOn = choice.checked;
      try { localStorage.setItem("keys", isOn ? "on" : "off"); } catch { /* then until the page is left */ }
    });
  });
})();
