import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import path from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { Message } from "../../sandbox/slack/state/records.ts";
import type { World } from "../../sandbox/world.ts";

/** What an older version left behind; `make-state.ts` made it. */
export interface State {
  /** When, by the clock of its Redis (ms). */
  atMs: number;
  policy: string;
  /** All of Redis, as the commands of an append-only file. */
  redis: string;
  /** Its data directory: path to text. */
  data: Record<string, string>;
  vms: { id: string; createdAt: number }[];
  messages: (Omit<Message, "reactions"> & { reactions: [] })[];
}

export async function readState(name: string): Promise<State> {
  const packed = await readFile(path.join(import.meta.dirname, `${name}.json.gz`));
  return JSON.parse((await promisify(gunzip)(packed)).toString()) as State;
}

/** Plays the commands into a Redis that is empty. */
export async function loadRedis({ redis }: State, port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  let said = "";
  socket.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const ended = once(socket, "close");
  socket.write(redis);
  socket.write("QUIT\r\n");
  await ended;
  const refusal = /^-.*/m.exec(said);
  if (refusal) throw new Error(`Redis takes the older state badly: ${refusal[0]}`);
}

/** Puts the older version's messages into Slack, and its files where a new process looks for them. */
export async function moveIn({ messages, data }: State, { slack, env }: World): Promise<void> {
  for (const { channelId, ...message } of messages) {
    const channel = slack.workspace.messages.get(channelId) ?? [];
    channel.push({ ...message, channelId, reactions: new Map() });
    slack.workspace.messages.set(channelId, channel);
  }
  for (const [name, text] of Object.entries(data)) {
    const file = path.join(env["DATA_DIR"] ?? "", name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text, { mode: 0o600 });
  }
}
