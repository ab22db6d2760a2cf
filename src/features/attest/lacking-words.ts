import type { Lack } from "../../monitor/drift-records.ts";

/** Says what stops while VMs can't be verified. */
export const untilWords = ({ isExpired = false }: Pick<Lack, "isExpired">): string =>
  `Until ${isExpired ? "it is renewed" : "that ends"}, no consoles and no rollouts there.`;
