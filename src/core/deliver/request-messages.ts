import type { AfterNote } from "../../attestation/render-attestation.ts";
import type { Policy } from "../../config/policy-file.ts";
import type { Log } from "../../log/log.ts";
import type { Markdown } from "../../messages/markdown.ts";
import type { ChangeCommand, Command } from "../../registry/define.ts";
import type { EmergencyWords } from "../../registry/emergency.ts";
import type { Place, Web } from "../../slack/web.ts";
import type { SinceRequest } from "../cards/asking.ts";
import {
  cameFrom,
  closedLine,
  renderAsked,
  renderCard,
  renderExpired,
  renderUnknownElsewhere,
  whoMaySkip,
  withResult,
} from "../cards/render-card.ts";
import {
  type Above,
  cardVersion,
  cardViewOf,
  isChannel,
  isDecidedElsewhere,
  renderNotice,
  renderResult,
} from "../cards/render-result.ts";
import { versionOf } from "../cards/since-request.ts";
import type { Failpoints } from "../failpoints.ts";
import type { NameOf } from "../permit/access.ts";
import { needsOf } from "../permit/approval-rule.ts";
import type { Delivered, StoredRequest } from "../request/stored-request.ts";
import type { ToldResult } from "./after-result.ts";
import type { Links } from "./permalink.ts";
import type { Role } from "./placements.ts";
import { type Owed, isSaid } from "./post-once.ts";
import { tellDeciders } from "./tell-deciders.ts";

/** A message of a request, without its place. */
export type Post = Omit<Owed, "key" | "mark" | "place" | "onClosed">;

export interface MessageOptions {
  /** All commands, for the buttons that offer them. */
  offered?: readonly Command[];
  /** The words for changes that skip approvals. Undefined when none can. */
  emergency?: EmergencyWords | undefined;
  /** Reads the names of people and groups. */
  namesOf(ids: readonly string[]): Promise<NameOf>;
  web: Web;
  /**
   * The policy is read at each use. It says who may approve when the request doesn't say it, and
   * which buttons ask for a confirmation.
   */
  config: { readonly policy: Pick<Policy, "access" | "confirm" | "teams"> };
  /** Tells what is added to a result: whether the VM is attested again. */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
  /** Reads the facts that outlast the end of a request: a sentence each. */
  factsAfter(request: StoredRequest): Promise<readonly Markdown[]>;
  /** Called when Slack has accepted these results in a channel. */
  onTold(results: readonly ToldResult[], channelId: string): void;
  log: Log;
  at: Failpoints<"link" | "post">;
}

/** Facts beside a request's record, read before its messages are prepared. */
export interface KnownOfRequest {
  /** Changes of its target since it was made. */
  since: SinceRequest;
  /** No worker is alive to begin with it. */
  isStranded: boolean;
}

/** The content of the messages of one request, as it was read. */
export class RequestMessages {
  readonly #options: MessageOptions;
  readonly #linkTo: Links;
  readonly #request: StoredRequest;
  readonly #command: ChangeCommand;
  readonly #known: KnownOfRequest;
  /** The note that a result was rendered with. */
  #note: AfterNote | undefined;

  constructor(
    options: MessageOptions,
    linkTo: Links,
    of: { request: StoredRequest; command: ChangeCommand; known: KnownOfRequest },
  ) {
    this.#options = options;
    this.#linkTo = linkTo;
    this.#request = of.request;
    this.#command = of.command;
    this.#known = of.known;
  }

  /** Returns the message of a role (`placementsOf`). */
  post(role: Role): Post {
    switch (role.kind) {
      case "card":
        return this.#card();
      case "asked":
        return this.#asked();
      case "answer":
        return this.#answer();
      case "notice":
        return this.#noticeOf(role.notice);
      case "unknown-elsewhere":
        return this.#unknownElsewhere(role.notice);
      default:
        return this.#expired();
    }
  }

  #card(): Post {
    const request = this.#request;
    const command = this.#command;
    const { since, isStranded } = this.#known;
    const { delivered, final } = request;
    const isNew = delivered.formerCard === undefined;
    return {
      render: async () => {
        const after = await this.#readNote();
        const { config, emergency, offered } = this.#options;
        const { policy } = config;
        const skipping =
          cardViewOf(request) === "asking" ? whoMaySkip(request, command, policy) : [];
        const nameOf = emergency && (await this.#options.namesOf(skipping));
        const known = { since, isStranded, after, policy, emergency, nameOf, commands: offered };
        const place = { ...(await this.#placeOnCard()), ...known };
        const shown = renderCard(request, command, this.#approvers(), place);
        return final && this.#holdsResult("card", "result")
          ? withResult(await this.#renderEnd({}), shown)
          : shown;
      },
      shows: {
        field: "face",
        before: delivered.cardFingerprint ?? "",
        now: `${cardFingerprint(request, since)}${isLinked(request) ? " linked" : ""}${isStranded ? " no-worker" : ""}`,
        standsAt: delivered.card,
        isLast: cardViewOf(request) === "ended",
        asks: isShownAsking(delivered.cardFingerprint) && isNew,
        tellsEnd: final && isNew,
        onStale: () => tellDeciders(request, command, this.#options),
      },
      urgency: this.#urgency(),
      covers: this.#covered("result"),
      onSaid: final && !isDecidedElsewhere(request) ? this.#onTold : undefined,
    };
  }

  /** The message where it was requested, which links to the card in the channel of the team. */
  #asked(): Post {
    const request = this.#request;
    const command = this.#command;
    const { since } = this.#known;
    const { delivered, final, record } = request;
    return {
      render: async () => {
        const { at, config, offered } = this.#options;
        await at?.("link", record.id);
        const after = await this.#readNote();
        const known = { since, after, policy: config.policy, commands: offered };
        const shown = renderAsked(request, command, await this.#linkTo(delivered.card), known);
        return final && this.#holdsResult("asked", "answer")
          ? withResult(await this.#renderEnd({ isMentioned: true }), shown)
          : shown;
      },
      shows: {
        field: "asked-face",
        before: delivered.requestMessageFingerprint ?? "",
        now: cardFingerprint(request, since),
        standsAt: delivered.requestMessage,
        isLast: cardViewOf(request) === "ended",
        tellsEnd: final && delivered.formerRequestMessage === undefined,
      },
      urgency: this.#urgency(),
      covers: this.#covered("answer"),
      onSaid: final ? this.#onTold : undefined,
    };
  }

  #answer(): Post {
    const { requestMessage, formerRequestMessage } = this.#request.delivered;
    return {
      render: async (place) => {
        const above = aboveAt(place, formerRequestMessage ? undefined : requestMessage);
        return this.#renderEnd({ isMentioned: true, above });
      },
      urgency: "result",
      onSaid: this.#onTold,
    };
  }

  #noticeOf(notice: string): Post {
    const request = this.#request;
    const command = this.#command;
    const isResult = notice === "result";
    return {
      render: async (place) => {
        await this.#options.at?.("post", request.record.id);
        // A card that was posted anew doesn't count, so that the notice says everything.
        const { card, formerCard } = request.delivered;
        const above = aboveAt(place, formerCard ? undefined : card);
        return isResult
          ? this.#renderEnd({ above })
          : renderNotice(notice, request, command, { above });
      },
      urgency: isResult ? "result" : "decision",
      onSaid: isResult && !isDecidedElsewhere(request) ? this.#onTold : undefined,
    };
  }

  #unknownElsewhere(notice: string): Post {
    const request = this.#request;
    const command = this.#command;
    return {
      render: async () =>
        renderUnknownElsewhere(
          notice,
          request,
          command,
          await this.#linkTo(request.delivered.card),
        ),
      urgency: "decision",
    };
  }

  #expired(): Post {
    const request = this.#request;
    const command = this.#command;
    return {
      render: async () =>
        renderExpired(request, command, await this.#linkTo(request.delivered.card)),
    };
  }

  readonly #onTold = (channelId: string): void =>
    this.#options.onTold([{ request: this.#request, note: this.#note }], channelId);

  #urgency(): Owed["urgency"] {
    const { state, final } = this.#request;
    if (state === "draft" || state === "unknown") return "decision";
    return final ? "result" : "card";
  }

  /** The result that a card holds when it is posted after the end. */
  #covered(result: "result" | "answer"): readonly string[] {
    const { final, delivered } = this.#request;
    return final && !isSaid(delivered.marks[result]) ? [result] : [];
  }

  /**
   * Whether the card also holds the result. A posted card does if both have the same ts. One that
   * isn't posted yet, or is posted anew, does unless the result was posted already.
   */
  #holdsResult(card: "card" | "asked", result: "result" | "answer"): boolean {
    const { marks } = this.#request.delivered;
    return isSaid(marks[card]) ? marks[card] === marks[result] : !isSaid(marks[result]);
  }

  /** The note is remembered, so one that is read before the end would be missing from the result. */
  async #readNote(): Promise<AfterNote | undefined> {
    if (!this.#request.final) return undefined;
    this.#note = await this.#options.attestationNote(this.#request, this.#command);
    return this.#note;
  }

  async #renderEnd(shown: { isMentioned?: boolean; above?: Above }) {
    const after = await this.#readNote();
    const goesOn = await this.#options.factsAfter(this.#request);
    const facts = { ...shown, goesOn, commands: this.#options.offered };
    return renderResult(this.#request, this.#command, after, facts);
  }

  /** The IDs that the card mentions: the people and groups that may approve. */
  #approvers(): readonly string[] {
    const { approval } = this.#request.record;
    if (!approval) return [];
    const needs = needsOf(this.#options.config.policy, approval);
    return [...new Set(needs.flatMap(({ from }) => from))];
  }

  /** Says on a card where it was requested, or why the card is here. */
  async #placeOnCard(): Promise<Parameters<typeof renderCard>[3]> {
    const request = this.#request;
    if (!isDecidedElsewhere(request)) return { note: closedLine(request) };
    const link = isLinked(request)
      ? await this.#linkTo(request.delivered.requestMessage)
      : undefined;
    return { from: cameFrom(request, link) };
  }
}

/**
 * Tells what is above a message in a place. A thread that isn't the card's may have other cards.
 */
function aboveAt(place: Place | undefined, card: Delivered["card"]): Above {
  if (place?.threadTs === undefined || card === undefined) return undefined;
  return place.threadTs === card.ts ? "card" : "several";
}

/**
 * Whether a card may ask people for a decision, by the version that it shows. While an edit is
 * under way, or when its answer was lost, that isn't known, so it counts as asking.
 */
const isShownAsking = (view = "") => /^(asking|unknown|editing)/.test(view);

/** Returns the fingerprint of what a card is made of. The card is edited when this changes. */
function cardFingerprint(request: StoredRequest, since: SinceRequest): string {
  const version = versionOf(since);
  const signed = request.delivered.review ? " signed" : "";
  return `${cardVersion(request)}${version && ` since ${version}`}${signed}`;
}

/**
 * Whether the card links to the message where it was requested. A direct message isn't linked,
 * because others can't see it.
 */
function isLinked(request: StoredRequest): boolean {
  const { record, delivered } = request;
  return (
    isDecidedElsewhere(request) &&
    delivered.requestMessage !== undefined &&
    isChannel(record.channelId)
  );
}
