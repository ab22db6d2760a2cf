import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { type Fields, fieldsOf, textOf } from "../fields.ts";
import type { Workspace } from "../state/workspace.ts";

export interface Envelope {
  id: string;
  /** The frame as it goes over the wire. */
  text: string;
}

const mostConnections = 10;
const pingEveryMs = 10_000;

/** Slack's end of Socket Mode: every envelope goes to any one of the app's connections. */
export class SocketMode {
  readonly #workspace: Workspace;
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #waiting = new Map<string, ((payload: Fields) => void)[]>();
  #turn = 0;
  readonly #pings: NodeJS.Timeout;

  constructor(workspace: Workspace) {
    this.#workspace = workspace;
    this.#pings = setInterval(() => {
      for (const connection of this.#server.clients) connection.ping();
    }, pingEveryMs).unref();
  }

  get connections(): number {
    return this.#open().length;
  }

  #open(): WebSocket[] {
    return [...this.#server.clients].filter(({ readyState, OPEN }) => readyState === OPEN);
  }

  accept(request: IncomingMessage, socket: Duplex, head: Buffer, query: URLSearchParams): void {
    const refuse = (status: string) =>
      socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    if (!this.#workspace.socketTickets.delete(query.get("ticket") ?? ""))
      return void refuse("401 Unauthorized");
    if (this.connections >= mostConnections) return void refuse("429 Too Many Requests");
    this.#server.handleUpgrade(request, socket, head, (connection) =>
      this.#welcome(connection, query.get("debug_reconnects") === "true"),
    );
  }

  #welcome(connection: WebSocket, reconnectsEarly: boolean): void {
    connection.on("message", (frame: Buffer) => this.#receive(frame.toString()));
    // A broken line closes too; without a listener its error would end the process
    connection.on("error", () => {});
    connection.on("close", () => this.#workspace.changed());
    connection.send(
      JSON.stringify({
        type: "hello",
        num_connections: this.connections,
        debug_info: {
          host: "sandbox",
          build_number: 1,
          approximate_connection_time: reconnectsEarly ? 360 : 18_060,
        },
        connection_info: { app_id: this.#workspace.app.appId },
      }),
    );
    this.#workspace.changed();
  }

  /** Makes an envelope around a payload. */
  wrap(
    type: "slash_commands" | "interactive" | "events_api",
    payload: Fields,
    accepts: boolean,
    retry?: Fields,
  ): Envelope {
    const id = randomUUID();
    const text = JSON.stringify({
      envelope_id: id,
      payload,
      type,
      accepts_response_payload: accepts,
      ...retry,
    });
    return { id, text };
  }

  /**
   * Sends to any one connection and resolves with the ack's payload. Rejects with an Error whose message is
   * `dispatch_failed` (nobody connected) or `operation_timeout`.
   */
  send(envelope: Envelope, timeoutMs: number): Promise<Fields> {
    const open = this.#open();
    this.#turn += 1;
    const connection = open[this.#turn % Math.max(1, open.length)];
    if (!connection) return Promise.reject(new Error("dispatch_failed"));
    return new Promise((resolve, reject) => {
      const settle = (payload: Fields) => {
        clearTimeout(timer);
        resolve(payload);
      };
      const timer = setTimeout(() => {
        const list = this.#waiting.get(envelope.id) ?? [];
        this.#waiting.set(
          envelope.id,
          list.filter((other) => other !== settle),
        );
        reject(new Error("operation_timeout"));
      }, timeoutMs);
      this.#waiting.set(envelope.id, [...(this.#waiting.get(envelope.id) ?? []), settle]);
      connection.send(envelope.text);
    });
  }

  /** Sends a frame as it is, to one connection. */
  sendFrame(text: string): void {
    this.#open()[0]?.send(text);
  }

  /**
   * Tells connections to go, like Slack does every few hours (`refresh_requested`), 10 s before (`warning`), or when
   * Socket Mode was switched off (`link_disabled`); `cut` tears the line without a word.
   */
  disconnect(reason: "warning" | "refresh_requested" | "link_disabled" | "cut"): void {
    for (const connection of this.#server.clients) {
      if (reason === "cut") connection.terminate();
      else
        connection.send(
          JSON.stringify({ type: "disconnect", reason, debug_info: { host: "sandbox" } }),
        );
      if (reason === "link_disabled") connection.close();
    }
  }

  close(): void {
    clearInterval(this.#pings);
    for (const connection of this.#server.clients) connection.terminate();
  }

  #receive(text: string): void {
    const message = fieldsOf(parsed(text));
    const id = textOf(message["envelope_id"]);
    const [first, ...rest] = this.#waiting.get(id) ?? [];
    if (rest.length > 0) this.#waiting.set(id, rest);
    else this.#waiting.delete(id);
    first?.(fieldsOf(message["payload"]));
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
