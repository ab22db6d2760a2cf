import { type Fields, isFields, textOf } from "../../fields.ts";
import { maySee } from "../../state/channels.ts";
import type { Channel, Person } from "../../state/records.ts";
import type { Workspace } from "../../state/workspace.ts";

/** `ok: false`, with Slack's word for it and what else belongs in the answer. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly more: Fields;

  constructor(error: string, more: Fields = {}) {
    super(error);
    this.more = more;
  }
}

/** Arguments that Slack's schema refuses; the complaints say where. */
export function refuseArguments(
  error: "invalid_blocks" | "invalid_arguments",
  complaints: readonly string[],
): never {
  const messages = complaints.map((complaint) => `[ERROR] ${complaint}`);
  throw new Refused(error, { errors: [...complaints], response_metadata: { messages } });
}

export interface Method {
  /** Any one of these is enough; a channel's own kind may ask for a particular one (see `needsScope`). */
  scopes: readonly string[];
  /** Which token it takes; `none` takes any, and none. */
  token: "bot" | "app" | "none";
  run(call: Call): Fields;
}

/** One call of a method: its arguments with JSON strings already read, and the workspace. */
export class Call {
  readonly workspace: Workspace;
  readonly args: Fields;

  constructor(workspace: Workspace, args: Fields) {
    this.workspace = workspace;
    this.args = args;
  }

  text(name: string): string {
    return textOf(this.args[name]);
  }

  flag(name: string): boolean {
    const value = this.args[name];
    return value === true || value === "true" || value === "1" || value === 1;
  }

  has(name: string): boolean {
    const value = this.args[name];
    return value !== undefined && value !== null && value !== "";
  }

  number(name: string, otherwise: number, most: number): number {
    if (!this.has(name)) return otherwise;
    const value = Number(this.args[name]);
    if (!Number.isInteger(value) || value < 1) throw new Refused("invalid_limit");
    return Math.min(value, most);
  }

  /** An argument that is JSON: an object or list as it is, or the string a form carries. */
  json(name: string, error: string): unknown {
    const value = this.args[name];
    if (typeof value !== "string") return value ?? undefined;
    if (value === "") return undefined;
    try {
      return JSON.parse(value) as unknown;
    } catch {
      throw new Refused(error);
    }
  }

  list(name: string, error: string): unknown[] {
    const value = this.json(name, error);
    if (value === undefined) return [];
    if (!Array.isArray(value)) throw new Refused(error);
    return value;
  }

  object(name: string, error: string): Fields | undefined {
    const value = this.json(name, error);
    if (value === undefined) return undefined;
    if (!isFields(value)) throw new Refused(error);
    return value;
  }

  required(...names: string[]): void {
    const missing = names.filter((name) => !this.has(name));
    if (missing.length > 0) {
      refuseArguments(
        "invalid_arguments",
        missing.map((name) => `missing required field: ${name} [json-pointer:]`),
      );
    }
  }

  needsScope(scope: string): void {
    const provided = this.workspace.app.scopes;
    if (!provided.includes(scope)) {
      throw new Refused("missing_scope", { needed: scope, provided: provided.join(",") });
    }
  }

  get bot(): Person {
    const bot = this.workspace.people.get(this.workspace.app.botUserId);
    if (!bot) throw new Refused("account_inactive");
    return bot;
  }

  /** A channel the bot may know of. Private ones it isn't in don't exist for it. */
  channel(name = "channel"): Channel {
    const channel = this.workspace.channels.get(this.text(name));
    if (!channel || !maySee(channel, this.bot)) throw new Refused("channel_not_found");
    return channel;
  }

  /** A channel the bot is in. */
  joinedChannel(name = "channel"): Channel {
    const channel = this.channel(name);
    if (!channel.memberIds.has(this.bot.id)) throw new Refused("not_in_channel");
    return channel;
  }

  person(name = "user"): Person {
    const person = this.workspace.people.get(this.text(name));
    if (!person) throw new Refused("user_not_found");
    return person;
  }
}

/** `channels:read`, `groups:history` and so on: the scope for this kind of channel. */
export function channelScope(channel: Channel, right: "read" | "history" | "write"): string {
  const kind = { public: "channels", private: "groups", direct: "im", group: "mpim" }[channel.kind];
  return `${kind}:${right}`;
}

/** One page of a list, with Slack's cursor. */
export function page<T>(
  call: Call,
  all: readonly T[],
  limit: number,
): { items: T[]; next_cursor: string } {
  const cursor = call.text("cursor");
  const from =
    cursor === ""
      ? 0
      : Number(
          Buffer.from(cursor, "base64url")
            .toString()
            .replace(/^from:/, ""),
        );
  if (!Number.isInteger(from) || from < 0) throw new Refused("invalid_cursor");
  const items = all.slice(from, from + limit);
  const next =
    from + limit < all.length ? Buffer.from(`from:${from + limit}`).toString("base64url") : "";
  return { items, next_cursor: next };
}
