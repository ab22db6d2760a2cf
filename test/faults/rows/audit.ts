import type { RowNotRun } from "../row.ts";

export const auditRows: RowNotRun[] = [
  {
    id: "U1",
    what: "the disk of the ledger is full or read-only",
    notRun: "needs a file system that fails",
  },
  {
    id: "U2",
    what: "the audit sink hangs",
    notRun: "the audit trail lies in Redis, written by the script of the move: R5 is its case",
  },
  {
    id: "U3",
    what: "a record changed, removed, swapped, truncated",
    notRun: "sealing and verifying have no row in this suite: test/audit shows them",
  },
  {
    id: "U4",
    what: "a crash in the middle of a record",
    notRun: "a record and its move are one Redis script, there is no middle: P4 to P8",
  },
];
