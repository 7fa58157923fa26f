"use strict";
const valueOf = (row, column) => {
  const cell = row.children[column];
  const number = cell && cell.dataset.value;
  return number === undefined ? (cell ? cell.textContent : "") : Number(number);
};
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    let direction = 1;
    head.title = "Sort";
    head.addEventListener("click", () => {
      const body = table.tBodies[0];
      const rows = Array.from(body.rows);
      rows.sort((one, other) => {
        const [a, b] = [valueOf(one, column), valueOf(other, column)];
        if (typeof a === "number" && typeof b === "number") return direction * (a - b);
        return direction * String(a).localeCompare(String(b));
      });
      direction = -direction;
      rows.forEach((row) => body.appendChild(row));
    });
  });
}
