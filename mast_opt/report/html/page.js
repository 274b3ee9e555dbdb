(() => {
  const root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.getElementById("theme").addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; });
  const tip = document.getElementById("tip");
  const show = (event) => {
    const mark = event.target.closest("[role=graphics-symbol][aria-label]");
    tip.hidden = !mark || mark.classList.contains("role-axis");
    if (tip.hidden) return;
    tip.textContent = mark.getAttribute("aria-label");
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${event.clientY + 18}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
})();
