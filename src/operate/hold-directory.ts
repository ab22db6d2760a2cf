import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { connect, createServer } from "node:net";
import path from "node:path";
import { ConfigError } from "../config/config.ts";
import { within } from "../deadline.ts";
import { codeOf } from "../errors.ts";
import { privateFolder } from "../regular-file.ts";
import { wayOut, writeProbe } from "./checks/folders.ts";

const lockName = /^lock-[0-9a-f]{16}\.sock$/;
/** What fits into the address of a socket on every system (macOS: 104 with the end). */
const longestPath = 103;
const answerWithinMs = 1_000;
/** All that Gatehouse writes there. */
const ourName =
  /^(ledger|sends-.*\.jsonl|audit-anchors\.jsonl|audit-key\.pem(\..*)?|policy\.json(\.new)?|lock-.*)$/;

/**
 * Makes sure that this process can write its directory, and is the only one that does until `close`. Throws ConfigError.
 *
 * Each process listens on a socket of its own in the directory, and only then looks whether another one answers: of two
 * that start at once, the later to look finds the earlier. A killed process leaves a socket that refuses, in the same
 * instant; a frozen one still answers. Decision 022 says why it isn't a file with a process ID.
 */
export async function holdDirectory(folder: string): Promise<{ close(): Promise<void> }> {
  const name = `lock-${randomBytes(8).toString("hex")}.sock`;
  probe(folder);
  const server = createServer((socket) => socket.destroy()).unref();
  const close = async () => {
    const closed = once(server, "close");
    server.close(); // removes the socket, too
    await closed;
  };
  try {
    server.listen(socketPath(folder, name));
    await once(server, "listening");
    tighten(folder);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw unusable(
      `${folder} can't hold a socket (${codeOf(error)}), by which a second process would be noticed: use a local disk`,
    );
  }
  server.on("error", () => undefined); // it has heard of all it has to
  const others = readdirSync(folder).filter((other) => lockName.test(other) && other !== name);
  const answers = await Promise.all(others.map((other) => answersAt(folder, other)));
  // Removed while it was bound but didn't listen yet: a third process looked at that moment
  if (answers.includes(true) || !existsSync(path.join(folder, name))) {
    await close();
    throw unusable(
      `${folder} is in use by another process of Gatehouse: give each process a directory of its own`,
    );
  }
  return { close };
}

function unusable(sentence: string): ConfigError {
  return new ConfigError([`DATA_DIR: ${sentence}`]);
}

/** The ledger and the anchors are written at moments when it is too late to say that they can't be. */
function probe(folder: string): void {
  try {
    mkdirSync(folder, privateFolder);
    writeProbe(folder);
  } catch (error) {
    const code = codeOf(error);
    throw unusable(`${folder} can't be written (${code}): ${wayOut(code)}`);
  }
}

/**
 * Takes from others what they could read of ours: versions before made it as the umask said. A directory that has anything
 * else in it may be shared for a reason, and keeps its mode. What isn't this user's can't be changed, and isn't.
 */
function tighten(at: string): void {
  try {
    const found = statSync(at);
    const names = found.isDirectory() ? readdirSync(at) : [];
    const ours = names.filter((name) => ourName.test(name)).map((name) => path.join(at, name));
    const isOwn = found.uid === process.getuid?.() && ours.length === names.length;
    const isSticky = (found.mode & 0o1000) !== 0;
    if (isOwn && !isSticky) chmodSync(at, found.mode & (found.isDirectory() ? 0o7700 : 0o600));
    for (const inner of ours) if (!lstatSync(inner).isSymbolicLink()) tighten(inner);
  } catch {
    // It was removed meanwhile, can't be read, or its file system knows no modes
  }
}

function socketPath(folder: string, name: string): string {
  const file = path.join(folder, name);
  const shown = [file, path.relative(process.cwd(), file)].toSorted((a, b) => a.length - b.length);
  const shortest = shown[0] ?? file;
  if (Buffer.byteLength(shortest) > longestPath)
    throw unusable(`${folder} is too long a path for a socket: ${longestPath - 27} bytes at most`);
  return shortest;
}

/** Whether a process lives behind the socket; what doubtlessly is a dead one's is removed. */
async function answersAt(folder: string, name: string): Promise<boolean> {
  const socket = connect(socketPath(folder, name));
  try {
    return await within(
      answerWithinMs,
      once(socket, "connect").then(() => true),
      () => true,
    );
  } catch (error) {
    const isDead = ["ECONNREFUSED", "ENOENT"].includes(codeOf(error));
    if (isDead) rmSync(path.join(folder, name), { force: true });
    return !isDead;
  } finally {
    socket.on("error", () => undefined);
    socket.destroy();
  }
}
