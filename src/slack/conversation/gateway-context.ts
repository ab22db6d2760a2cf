import type { Digests } from "../../digests/create-digests.ts";
import type { Subscriptions } from "../../digests/subscriptions.ts";
import type { Appraiser } from "../../attestation/appraiser.ts";
import type { Compute } from "../../compute/compute.ts";
import type { Inventory } from "../../inventory/inventory.ts";
import type { Snapshots } from "../../inventory/snapshots.ts";
import type { Log } from "../../log/log.ts";
import type { Message } from "../../messages/message.ts";
import type { Policy } from "../../config/policy-file.ts";
import type { ReadContext, StatusLine } from "../../commands/context.ts";
import {
  type ChangeCommand,
  type Command,
  dottedName,
  requestable,
} from "../../registry/define.ts";
import type { Person } from "../../registry/invocation.ts";
import type { Journal } from "../../requests/journal/journal.ts";
import type { Rollouts } from "../../rollouts/rollouts.ts";
import type { Web } from "../web.ts";

export interface GatewayContext {
  commands: readonly Command[];
  policy: Policy;
  policyVersion: string;
  /** Why this process may change nothing now, in words (`start/policy-keeper.ts`). */
  standstill(): string | undefined;
  ourTeamId: string;
  store: Journal;
  rollouts: Rollouts;
  inventory: Inventory;
  snapshots: Snapshots;
  compute: Compute;
  appraiser: Appraiser;
  web: Web;
  /** Uploads go only to its hosts. */
  apiUrl: string;
  /** Rejects when Slack can't tell who the person is. */
  person(userId: string, teamId: string, options?: { fresh?: boolean }): Promise<Person>;
  /** Reads the members of these groups; undefined for a group that can't be read. */
  membersOf(
    entries: readonly string[],
  ): Promise<(groupId: string) => readonly string[] | undefined>;
  /** Of a person or a user group, for messages only. */
  nameOf(id: string): string | undefined;
  learnNames(ids: readonly string[]): Promise<void>;
  /** Counting the VMs of this inventory, or all. */
  status(inventory?: Inventory): Promise<readonly StatusLine[]>;
  wake(id: string): Promise<void>;
  /** Posts to the audit channel, once per id; nothing where policy names none. Alarms go where `alertChannel` says. */
  tell(where: "audit", id: string, message: Message): Promise<void>;
  /** To the audit channel, and to each channel where something is open or was requested within the last hour. */
  tellBusy(id: string, message: Message): Promise<void>;
  trail: ReadContext["trail"];
  digests: Digests;
  subscriptions: Subscriptions;
  seal(responseUrl: string): string;
  log: Log;
  now(): number;
}

export function changeNamed(
  name: string | undefined,
  { commands }: Pick<GatewayContext, "commands">,
): ChangeCommand | undefined {
  return requestable(commands).find((command) => command.name === name);
}

export function byDottedName(commands: readonly Command[], name: string): Command | undefined {
  return commands.find((command) => dottedName(command) === name);
}
