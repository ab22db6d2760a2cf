import type { SeenNotification, SeenOption, SeenState, SeenToast } from "../seen.ts";
import type { AppSettings } from "./app-settings.ts";
import { Changes } from "./changes.ts";
import type {
  Channel,
  Ephemeral,
  Group,
  Message,
  Person,
  ResponseUrl,
  StoredFile,
  Team,
  Trigger,
  View,
} from "./records.ts";

/**
 * Everything the sandbox knows, in plain maps. Functions in the files beside this one read and change it and call
 * `changed()`; nobody else writes to it.
 */
export class Workspace {
  readonly team: Team = { id: "T01CONF", name: "Confidential", domain: "confidential" };
  readonly app: AppSettings;
  readonly now: () => number;
  /** Where the sandbox answers, without a slash at the end; known once it listens. */
  url = "";

  readonly people = new Map<string, Person>();
  readonly groups = new Map<string, Group>();
  readonly channels = new Map<string, Channel>();
  /** By channel, oldest first. */
  readonly messages = new Map<string, Message[]>();
  readonly ephemerals: Ephemeral[] = [];
  readonly files = new Map<string, StoredFile>();
  /** Each lets one Socket Mode connection in, once. */
  readonly socketTickets = new Set<string>();
  readonly triggers = new Map<string, Trigger>();
  readonly responseUrls = new Map<string, ResponseUrl>();
  /** Open modals by person, the one on top last. */
  readonly modals = new Map<string, View[]>();
  readonly homes = new Map<string, View>();
  /** What people chose in messages' own inputs: person, channel and ts joined by spaces. */
  readonly messageStates = new Map<string, SeenState>();
  /** Options the app suggested: by person, view or message, and action id. */
  readonly offered = new Map<string, SeenOption[]>();
  readonly toasts = new Map<string, SeenToast[]>();
  readonly notifications = new Map<string, SeenNotification[]>();
  /** The channel that each person looks at: where they did something last. */
  readonly viewing = new Map<string, string>();

  /** What administrators have set. */
  readonly rules: {
    /** For how long a message can be edited (ms). */
    editWindowMs?: number | undefined;
    /** How many messages the workspace may send in a minute. */
    messagesPerMinute?: number | undefined;
    /** How a message with any blocks is refused, as by a Slack that takes a kind of block no more. */
    refusesBlocks?: string | undefined;
  } = {};

  readonly changes: Changes;
  #lastTs = 0;
  #ids = 0;

  constructor(app: AppSettings, now: () => number) {
    this.app = app;
    this.now = now;
    this.changes = new Changes();
  }

  changed(): void {
    this.changes.announce();
  }

  /** A new message timestamp: seconds with six decimals, unique in the workspace and rising. */
  newTs(): string {
    this.#lastTs = Math.max(Math.round(this.now() * 1000), this.#lastTs + 1);
    const seconds = Math.floor(this.#lastTs / 1_000_000);
    return `${seconds}.${String(this.#lastTs % 1_000_000).padStart(6, "0")}`;
  }

  /** A new id like Slack's: a letter or two, then capitals and digits. */
  newId(prefix: string): string {
    this.#ids += 1;
    return `${prefix}0${this.#ids.toString(36).toUpperCase().padStart(8, "0")}`;
  }
}
