// Runs rows by their ids, one after the other, as its parent says; ends with it. A process of its own, so that a row can
// neither hold up nor end another one.
import { rows } from "../rows/index.ts";
import { type How, runRow } from "../rows/row.ts";

export interface Order {
  id: string;
  how: How;
}

process.on("disconnect", () => process.exit(0));
process.on("message", ({ id, how }: Order) => {
  const row = rows.find((one) => one.id === id);
  if (!row) throw new Error(`there is no row ${id}`);
  void runRow(row, how).then((outcome) => process.send?.(outcome));
});
