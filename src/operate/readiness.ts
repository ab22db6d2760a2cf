import type { Probed, Status, Unready } from "./checks/checks.ts";
import type { Gateway } from "./gateway.ts";

/** Whether a process gets work. It is asked from before its parts are open until they are closed. */
export class Readiness {
  /** Set once Redis and Slack have answered. */
  status: Pick<Status, "unready" | "redisProblem"> | undefined;
  gateway: Pick<Gateway, "problem"> | undefined;
  isStarted = false;
  #wedged: string | undefined;
  readonly #isStopping: () => boolean;
  readonly #onWedged: ((why: string, error?: unknown) => void) | undefined;

  constructor(isStopping: () => boolean, onWedged?: (why: string, error?: unknown) => void) {
    this.#isStopping = isStopping;
    this.#onWedged = onWedged;
  }

  /** Why the process can't continue. Undefined while it can. */
  get wedged(): string | undefined {
    return this.#wedged;
  }

  /** Records why the process can't continue, unless it stops anyway. */
  wedge(why: string, error?: unknown): void {
    if (this.#isStopping()) return;
    this.#wedged = why;
    this.#onWedged?.(why, error);
  }

  isSlackConnected(): boolean {
    return this.gateway !== undefined && this.gateway.problem() === undefined;
  }

  async isRedisWell(): Promise<boolean> {
    return this.status !== undefined && (await this.status.redisProblem()) === undefined;
  }

  /** Why this process gets no work, or the API none, which works without Slack. */
  async unready(probed: Probed = "process"): Promise<readonly Unready[]> {
    if (this.#wedged !== undefined) return [{ reason: "stuck", problem: this.#wedged }];
    if (this.#isStopping()) return [{ reason: "stopping", problem: "stopping" }];
    if (!this.status)
      return [{ reason: "starting", problem: "starting: Redis or Slack hasn't answered yet" }];
    const problem = probed === "API" ? undefined : this.gateway?.problem();
    const ofSlack = problem === undefined ? [] : [{ reason: "slack" as const, problem }];
    const reasons = [...ofSlack, ...(await this.status.unready(probed))];
    return reasons.length > 0 || this.isStarted
      ? reasons
      : [{ reason: "starting", problem: "starting" }];
  }
}
