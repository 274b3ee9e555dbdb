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
  const value = (row, at) => {
    const cell = row.cells[at];
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
    : typeof a === "number" ? 1 : typeof b === "number" ? -1 : a.localeCompare(b, undefined, { numeric: true });
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const falling = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].sort((a, b) => compare(value(a, at), value(b, at)) * (falling ? -1 : 1));
        body.append(...rows);
      });
    });
  }
  for (const field of document.querySelectorAll("input.search")) {
    const rows = [...field.nextElementSibling.querySelector("tbody").rows];
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
  const open = () => {
    const aim = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = aim && aim.querySelector("details");
    if (details) details.open = true;
    if (aim) aim.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
})();
