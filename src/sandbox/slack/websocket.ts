import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

/** The server's half of RFC 6455: text frames, pings and the closing handshake; no extensions, no binary. */
export class WebSocketConnection {
  readonly #socket: Duplex;
  #buffered = Buffer.alloc(0);
  #fragments: Buffer[] = [];
  #closing = false;
  onText: (text: string) => void = () => {};
  onClose: () => void = () => {};

  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.onClose());
    // Sockets of an HTTP server stay half open when the other side is gone
    socket.once("end", () => socket.destroy());
  }

  get isOpen(): boolean {
    return !this.#closing && this.#socket.writable;
  }

  sendText(text: string): void {
    if (this.isOpen) this.#socket.write(frame(0x1, Buffer.from(text)));
  }

  ping(): void {
    if (this.isOpen) this.#socket.write(frame(0x9, Buffer.from("ping")));
  }

  /** Says goodbye; the other side answers and hangs up. */
  close(code = 1000): void {
    if (this.#closing) return;
    this.#closing = true;
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(code);
    if (this.#socket.writable) this.#socket.write(frame(0x8, payload));
  }

  /** Cuts the line without a word. */
  destroy(): void {
    this.#closing = true;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#buffered = Buffer.concat([this.#buffered, chunk]);
    for (let next = readFrame(this.#buffered); next; next = readFrame(this.#buffered)) {
      this.#buffered = this.#buffered.subarray(next.size);
      this.#take(next);
    }
  }

  #take({ opcode, payload, last }: Frame): void {
    if (opcode === 0x9) this.#socket.write(frame(0xa, payload));
    else if (opcode === 0x8) {
      // The closing handshake: answer with the same code, unless it was us who began it.
      if (!this.#closing && this.#socket.writable)
        this.#socket.write(frame(0x8, payload.subarray(0, 2)));
      this.#closing = true;
      this.#socket.end();
    } else if (opcode === 0x0 || opcode === 0x1) {
      this.#fragments.push(payload);
      if (!last) return;
      const text = Buffer.concat(this.#fragments).toString();
      this.#fragments = [];
      this.onText(text);
    }
  }
}

/** Answers an upgrade request and returns the connection. */
export function acceptWebSocket(
  request: IncomingMessage,
  socket: Duplex,
): WebSocketConnection | undefined {
  const key = request.headers["sec-websocket-key"];
  if (typeof key !== "string") return undefined;
  // The constant is from RFC 6455, section 1.3.
  const accept = createHash("sha1")
    .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest("base64");
  socket.write(
    [
      "HTTP/1.1 101 Switching Protocols",
      "Upgrade: websocket",
      "Connection: Upgrade",
      `Sec-WebSocket-Accept: ${accept}`,
      "",
      "",
    ].join("\r\n"),
  );
  return new WebSocketConnection(socket);
}

interface Frame {
  opcode: number;
  payload: Buffer;
  last: boolean;
  size: number;
}

function readFrame(bytes: Buffer): Frame | undefined {
  if (bytes.length < 2) return undefined;
  const [first = 0, second = 0] = bytes;
  let length = second & 0x7f;
  let at = 2;
  if (length === 126) {
    if (bytes.length < 4) return undefined;
    length = bytes.readUInt16BE(2);
    at = 4;
  } else if (length === 127) {
    if (bytes.length < 10) return undefined;
    length = Number(bytes.readBigUInt64BE(2));
    at = 10;
  }
  const masked = (second & 0x80) !== 0;
  const end = at + (masked ? 4 : 0) + length;
  if (bytes.length < end) return undefined;
  const payload = Buffer.from(bytes.subarray(end - length, end));
  if (masked)
    for (let i = 0; i < length; i++) payload[i] = (payload[i] ?? 0) ^ (bytes[at + (i % 4)] ?? 0);
  return { opcode: first & 0x0f, payload, last: (first & 0x80) !== 0, size: end };
}

function frame(opcode: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(payload.length < 126 ? 2 : payload.length < 65_536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  if (payload.length < 126) head[1] = payload.length;
  else if (payload.length < 65_536) {
    head[1] = 126;
    head.writeUInt16BE(payload.length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(payload.length), 2);
  }
  return Buffer.concat([head, payload]);
}
