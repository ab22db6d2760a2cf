import type { ChangingPolicy } from "../config/changing-policy.ts";
import type { Config } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import type { Telemetry } from "../log/telemetry.ts";
import {
  type InForce,
  hasServicesOf,
  isInForce,
  policyName,
  versionProblem,
} from "./adopt-policy.ts";

/**
 * How long a replaced process may go on, because files reach processes one after the other: 15 s
 * with the usual heartbeat.
 */
const graceInBeats = 5;

/** Whether the file of this process is in force, and since when it isn't. */
export class PolicyStanding {
  /** True while another policy is in force than this process's. */
  isOut = false;
  readonly #on: { config: Config; log: Log; telemetry: Telemetry };
  #inForce: InForce = { stored: undefined, textInForce: undefined };
  /** When the rules of this process were last seen to be in force. Undefined if they never were. */
  #lastInForceAt: number | undefined;
  #isStandstillLogged = false;

  constructor(on: { config: Config; log: Log; telemetry: Telemetry }) {
    this.#on = on;
  }

  /** Compares the file of this process with the policy in force. */
  compareWith(inForce: InForce): void {
    this.#inForce = inForce;
    const { config, log, telemetry } = this.#on;
    const { policyFile: file } = config;
    const { stored } = inForce;
    // When Redis was emptied, or was never given a policy, nobody has replaced anything.
    if (isInForce(file.current, inForce) || (stored === undefined && !this.isOut)) {
      if (stored !== undefined && file.missingAt === undefined) file.goBy(stored.rules);
      if (this.isOut) log.info("policy.current-again", { version: ownPolicyName(config) });
      this.isOut = this.#isStandstillLogged = false;
      this.#lastInForceAt = performance.now();
    } else if (!this.isOut && stored !== undefined) {
      this.isOut = true;
      log.warn("policy.superseded", {
        version: ownPolicyName(config),
        current: policyName(stored.rules, stored.version),
        ...(!hasServicesOf(inForce, file.current) && { services: "other ones are in force" }),
      });
    }
    const still = this.standstill();
    telemetry.policyInfo.reset();
    telemetry.policyInfo.set({ version: config.policyVersion }, 1);
    telemetry.policySuperseded.set(still === undefined ? 0 : 1);
    if (still === undefined || this.#isStandstillLogged) return;
    this.#isStandstillLogged = true;
    log.error("policy.standstill", { why: still });
  }

  /**
   * Why this process may change nothing now, in words. Undefined while its rules are in force, or
   * were until a moment ago.
   */
  standstill(): string | undefined {
    if (!this.isOut) return undefined;
    const { config } = this.#on;
    const { policyFile: file } = config;
    const outMs = performance.now() - (this.#lastInForceAt ?? -Infinity);
    if (outMs < graceInBeats * config.policy.timing.heartbeatMs) return undefined;
    const { stored } = this.#inForce;
    const isMissing = file.missingAt !== undefined;
    const wasInForce = this.#lastInForceAt !== undefined;
    const out =
      wasInForce || isMissing ? undefined : versionProblem(file.asWritten, stored, file.shown);
    if (out !== undefined) return out;
    const problem = withPlaceAlone(
      file.problems[0] ?? `its policy file ${isMissing ? "is missing" : "isn't that one"}`,
    );
    return stored?.rules === config.policyVersion && !hasServicesOf(this.#inForce, file.current)
      ? `the services in gatehouse.yml were replaced, and this process doesn't have the new ones: ${problem}`
      : `version ${stored ? policyName(stored.rules, stored.version) : ""} of the policy replaced ${ownPolicyName(config)}, and this process doesn't have it: ${problem}`;
  }
}

/** The name of the rules by which this process goes. */
export const ownPolicyName = ({
  policyVersion,
  policyFile,
}: {
  policyVersion: string;
  policyFile: ChangingPolicy;
}): string => policyName(policyVersion, policyFile.asWritten.version);

/**
 * Keeps only the place, like `gatehouse.yml line 3`. The rest may name something that not everybody
 * may see, and is in the log.
 */
export function withPlaceAlone(problem: string): string {
  const [place = "", ...rest] = problem.split(": ");
  return rest.length > 0 ? `${place} can't be used` : problem;
}
