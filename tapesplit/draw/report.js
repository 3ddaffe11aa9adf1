// Explanations of the marks in a picture: on hover, or on focus. Each picture is one tab stop, arrow keys move inside it.
"use strict";
const tip = document.getElementById("tip");

function show(mark) {
  tip.textContent = mark.dataset.tip;
  tip.hidden = false;
  const box = mark.getBoundingClientRect();
  const left = Math.min(Math.max(box.left, 8), innerWidth - tip.offsetWidth - 8);
  const below = box.bottom + 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${below + tip.offsetHeight < innerHeight ? below : Math.max(box.top - tip.offsetHeight - 8, 8)}px`;
}

function move(event, marks) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const next = marks[(marks.indexOf(document.activeElement) + step + marks.length) % marks.length];
  marks.forEach((mark) => mark.setAttribute("tabindex", mark === next ? "0" : "-1"));
  next.focus();
  show(next);
}

for (const picture of document.querySelectorAll("svg.ts")) {
  const marks = [...picture.querySelectorAll("g.tip")];
  if (!marks.length) continue;
  picture.setAttribute("role", "group");
  marks.forEach((mark, number) => {
    const title = mark.querySelector("title");
    mark.dataset.tip = title.textContent;
    title.remove();
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", mark.dataset.tip);
    mark.setAttribute("tabindex", number ? "-1" : "0");
  });
  picture.addEventListener("keydown", (event) => move(event, marks));
}

for (const [begin, end] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
  document.addEventListener(begin, (event) => {
    const mark = event.target.closest?.("g.tip");
    if (mark) show(mark);
  });
  document.addEventListener(end, () => { tip.hidden = true; });
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
