import type { Appraiser } from "../../attestation/appraiser.ts";
import type { Compute } from "../../fleet/compute/compute.ts";
import type { Snapshots } from "../../fleet/inventory/snapshots.ts";
import type { Policy } from "../../config/policy-file.ts";
import type { Log } from "../../log/log.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { Person } from "../../registry/invocation.ts";
import type { Failpoints } from "../failpoints.ts";
import type { Journal } from "../request/journal.ts";
import type { Ledger } from "../request/ledger.ts";
import type { Polls } from "../request/polls.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { createShares } from "./fair-shares.ts";

/**
 * Everything that a worker's step needs. Parts that come later in the import order (the queue,
 * Slack) are passed in as functions.
 */
export interface WorkerContext {
  store: Journal;
  ledger: Ledger;
  compute: Compute;
  appraiser: Appraiser;
  snapshots: Pick<Snapshots, "find">;
  commands: readonly ChangeCommand[];
  policy: Policy;
  policyVersion: string;
  /** Says in words why this process claims nothing now (`operate/policy-keeper.ts`). */
  standstill(): string | undefined;
  ourTeamId: string;
  /** Resolves with who this is in Slack, at most a minute old. Rejects when Slack can't say. */
  person(id: string, teamId: string, how?: { fresh: boolean }): Promise<Person>;
  /** The name of a project as last read; undefined for one that isn't known. */
  projectName(id: string): Promise<string | undefined>;
  workerId: string;
  /** False once that worker's heartbeat stays away (`observeAlive`). */
  isAlive(workerId: string): Promise<boolean>;
  polls: Polls;
  /** This worker's slots, shared between projects. */
  shares: ReturnType<typeof createShares>;
  /**
   * Claims (`claimId`) whose call is under way in this process. Nothing is decided about them until
   * it ends.
   */
  calling: Set<string>;
  /**
   * Claims (`claimId`) of any worker that were seen under way, each with the time since when, by
   * this process's monotonic clock.
   */
  sendingSince: Map<string, number>;
  /** Claims (`claimId`) of this process whose call never left, and which couldn't be returned. */
  unsent: Set<string>;
  /**
   * Resolves with undefined once no single failure of Redis can lose this claim; otherwise with the
   * reason why that isn't known, in words.
   */
  durabilityProblem(
    claimed: StoredRequest,
    replicas: number | undefined,
  ): Promise<string | undefined>;
  log: Log;
  at: Failpoints<"gate" | "gated" | "claim" | "ledger" | "send" | "answer" | "move" | "watch">;
}
