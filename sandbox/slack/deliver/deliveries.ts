import type { Outcome } from "../actions.ts";
import { type Fields, isFields, textOf } from "../fields.ts";
import type { Workspace } from "../state/workspace.ts";
import { post, signedHeaders } from "./http-delivery.ts";
import type { Envelope, SocketMode } from "./socket-mode.ts";

export type DeliveryKind = "command" | "interaction" | "options" | "event";

/** One thing handed to the app, with every attempt. */
export interface Delivery {
  id: string;
  kind: DeliveryKind;
  payload: Fields;
  /** The HTTP body, byte for byte; empty over Socket Mode. */
  body: string;
  /** The headers of the first attempt. */
  headers: Record<string, string>;
  /** The frame, over Socket Mode. */
  envelope?: Envelope;
  attempts: Attempt[];
}

export interface Attempt {
  at: number;
  acked: boolean;
  ackMs: number;
  status?: number;
  error?: string;
  retryNum: number;
}

/** An outcome together with what the app put into its ack. */
export interface Acked extends Outcome {
  body: unknown;
}

/** Hands things to the app: over Socket Mode, or to the request URL where there is one. */
export class Deliveries {
  readonly #workspace: Workspace;
  readonly #socketMode: SocketMode;
  readonly list: Delivery[] = [];
  readonly #retries = new Set<NodeJS.Timeout>();

  constructor(workspace: Workspace, socketMode: SocketMode) {
    this.#workspace = workspace;
    this.#socketMode = socketMode;
  }

  /** Delivers once. Events that fail are tried again later, up to three times, like Slack does. */
  async deliver(kind: DeliveryKind, payload: Fields, acceptsPayload: boolean): Promise<Acked> {
    const delivery = this.#prepare(kind, payload, acceptsPayload);
    this.list.push(delivery);
    const acked = await this.#attempt(delivery, 0, {});
    if (kind === "event" && !acked.acked) this.#retryLater(delivery, 1, acked);
    return acceptsPayload ? acked : { ...acked, body: undefined };
  }

  find(id: string): Delivery {
    const found = this.list.find((delivery) => delivery.id === id);
    if (!found) throw new Error(`There is no delivery ${id}`);
    return found;
  }

  /**
   * Sends a delivery again, byte for byte. Over HTTP `atSeconds` signs it for another time, and `headers` replace
   * or (when undefined) remove what was sent.
   */
  async repeat(
    id: string,
    change: { headers?: Record<string, string | undefined>; atSeconds?: number } = {},
  ): Promise<Acked> {
    const delivery = this.find(id);
    const resigned =
      change.atSeconds === undefined
        ? {}
        : signedHeaders(this.#workspace.app.signingSecret, change.atSeconds, delivery.body);
    const headers = Object.entries({ ...delivery.headers, ...resigned, ...change.headers });
    const kept = Object.fromEntries(
      headers.filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
    return this.#attempt(delivery, 0, {}, kept);
  }

  close(): void {
    for (const timer of this.#retries) clearTimeout(timer);
    this.#retries.clear();
  }

  #prepare(kind: DeliveryKind, payload: Fields, accepts: boolean): Delivery {
    const { app } = this.#workspace;
    const base = {
      id: this.#workspace.newId("D"),
      kind,
      payload: structuredClone(payload),
      attempts: [],
    };
    if (app.requestUrl === undefined) {
      const type =
        kind === "command" ? "slash_commands" : kind === "event" ? "events_api" : "interactive";
      return {
        ...base,
        body: "",
        headers: {},
        envelope: this.#socketMode.wrap(
          type,
          payload,
          accepts,
          kind === "event" ? { retry_attempt: 0, retry_reason: "" } : {},
        ),
      };
    }
    const body = bodyOf(kind, payload);
    // Bolt reads a form only when the type is exactly this, without a charset.
    const type = kind === "event" ? "application/json" : "application/x-www-form-urlencoded";
    const seconds = Math.floor(this.#workspace.now() / 1000);
    const headers = {
      "content-type": type,
      "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
      accept: "application/json,*/*",
    };
    return {
      ...base,
      body,
      headers: { ...headers, ...signedHeaders(app.signingSecret, seconds, body) },
    };
  }

  async #attempt(
    delivery: Delivery,
    retryNum: number,
    retryHeaders: Record<string, string>,
    headers = delivery.headers,
  ): Promise<Acked> {
    const { app } = this.#workspace;
    const at = this.#workspace.now();
    const began = performance.now();
    const record = (result: Omit<Attempt, "at" | "ackMs" | "retryNum">, body: unknown): Acked => {
      const ackMs = performance.now() - began;
      delivery.attempts.push({ at, ackMs, retryNum, ...result });
      this.#workspace.changed();
      return { ...result, ackMs, deliveryId: delivery.id, body };
    };
    try {
      if (delivery.envelope) {
        const body = await this.#socketMode.send(delivery.envelope, app.ackTimeoutMs);
        return record({ acked: true }, body);
      }
      const answer = await post(
        app.requestUrl ?? "",
        delivery.body,
        { ...headers, ...retryHeaders },
        app.ackTimeoutMs,
      );
      const acked = answer.status >= 200 && answer.status < 300;
      const failed = acked ? {} : { error: answer.noRetry ? "no_retry" : "dispatch_failed" };
      return record({ acked, status: answer.status, ...failed }, ackBody(answer.body));
    } catch (error) {
      return record(
        { acked: false, error: error instanceof Error ? error.message : String(error) },
        undefined,
      );
    }
  }

  async #attemptAgain(
    delivery: Delivery,
    retryNum: number,
    headers: Record<string, string>,
  ): Promise<void> {
    const acked = await this.#attempt(delivery, retryNum, headers);
    if (!acked.acked) this.#retryLater(delivery, retryNum + 1, acked);
  }

  #retryLater(delivery: Delivery, retryNum: number, failed: Acked): void {
    const wait = this.#workspace.app.eventRetryDelaysMs[retryNum - 1];
    if (wait === undefined || failed.error === "no_retry") return;
    const reason =
      failed.error === "operation_timeout"
        ? "http_timeout"
        : failed.status === undefined
          ? "connection_failed"
          : "http_error";
    const timer = setTimeout(() => {
      this.#retries.delete(timer);
      if (delivery.envelope) {
        delivery.envelope = this.#socketMode.wrap("events_api", delivery.payload, false, {
          retry_attempt: retryNum,
          retry_reason: reason === "http_timeout" ? "timeout" : reason,
        });
      }
      const seconds = Math.floor(this.#workspace.now() / 1000);
      const signed = delivery.envelope
        ? {}
        : signedHeaders(this.#workspace.app.signingSecret, seconds, delivery.body);
      const headers = {
        ...signed,
        "x-slack-retry-num": String(retryNum),
        "x-slack-retry-reason": reason,
      };
      void this.#attemptAgain(delivery, retryNum, headers);
    }, wait);
    this.#retries.add(timer);
  }
}

/** Slack posts commands as form fields, interactions as one form field of JSON, events as JSON. */
function bodyOf(kind: DeliveryKind, payload: Fields): string {
  if (kind === "event") return JSON.stringify(payload);
  if (kind === "command")
    return new URLSearchParams(
      Object.entries(payload).map(([name, value]) => [name, textOf(value)]),
    ).toString();
  return new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
}

function ackBody(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    return isFields(parsed) ? parsed : text;
  } catch {
    return text;
  }
}
