import type { Compute } from "../compute/compute.ts";
import type { Inventory } from "../inventory/inventory.ts";
import type { Snapshots } from "../inventory/snapshots.ts";
import type { Log } from "../log.ts";
import type { Message } from "../messages/message.ts";
import type { Policy } from "../policy-file.ts";
import type { Answer, ChangeCommand, Command, StatusLine } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import type { Store } from "../requests/store.ts";
import type { RollStore } from "../rolls/store.ts";
import type { DigestDesk } from "./digest.ts";
import type { Web } from "./web.ts";

/** What a conversation with a person needs; joined in `start.ts`. */
export interface Talk {
  commands: readonly Command[];
  policy: Policy;
  policyVersion: string;
  ourTeamId: string;
  store: Store;
  rolls: RollStore;
  inventory: Inventory;
  snapshots: Snapshots;
  compute: Compute;
  web: Web;
  /** The address of Slack's API: uploads go to its hosts only. */
  apiUrl: string;
  /** Rejects when Slack can't say who somebody is: then the answer is no. */
  person(userId: string, teamId: string, options?: { fresh?: boolean }): Promise<Person>;
  /** Looks up the members of these groups now; one that can't be told has none. */
  membersOf(
    entries: readonly string[],
  ): Promise<(groupId: string) => readonly string[] | undefined>;
  /** A user group by its handle, for words only. */
  nameOf(id: string): string | undefined;
  status(): Promise<readonly StatusLine[]>;
  wake(id: string): Promise<void>;
  /** Something was written that Slack should hear of. */
  nudge(): void;
  /** Tells the audit or the alerts channel, once per id; nothing where policy names none. */
  tell(where: "audit" | "alerts", id: string, message: Message): Promise<void>;
  /** The audit trail about a target, a request or a person; `verify`, `export`. */
  audit(words: string, person: Person): Promise<Answer>;
  digest: DigestDesk;
  seal(responseUrl: string): string;
  log: Log;
  now(): number;
}

export function isChange(command: Command): command is ChangeCommand {
  return command.kind === "change";
}

/** The name of a command as buttons carry it: `vm.restart`. */
export function dotted(command: Pick<Command, "name">): string {
  return command.name.replaceAll(" ", ".");
}

export function byDottedName(commands: readonly Command[], name: string): Command | undefined {
  return commands.find((command) => dotted(command) === name);
}
