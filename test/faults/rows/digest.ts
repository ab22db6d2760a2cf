import type { Row, RowNotRun } from "../row.ts";

const notRun = "digests have no row in this suite yet";

export const digestRows: (Row | RowNotRun)[] = [
  { id: "G1", what: "three processes upsert the scheduler at start", notRun },
  { id: "G2", what: "down at the digest's time", notRun },
  { id: "G3", what: "the service is half down", notRun },
  { id: "G4", what: "Slack takes the digest and its answer is lost", notRun },
];
