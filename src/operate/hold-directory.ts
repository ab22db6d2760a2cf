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
import { ConfigError } from "../config/config-error.ts";
import { within } from "../deadline.ts";
import { codeOf } from "../errors.ts";
import { privateFolder } from "../regular-file.ts";
import { problemOfPlace, wayOut, writeProbe } from "./checks/folders.ts";

const lockName = /^lock-[0-9a-f]{16}\.sock$/;
/**
 * The longest path that fits into a socket's address on every system (macOS: 104 with the
 * terminating zero).
 */
const longestPath = 103;
const answerWithinMs = 1_000;
/** All files that Gatehouse writes there. */
const ourName =
  /^(ledger|sends-.*\.jsonl|audit-anchors\.jsonl|audit-key\.pem(\..*)?|policy\.json(\.new)?|lock-.*)$/;

/**
 * Ensures that this process can write its directory, and that no other process uses it until
 * `close`. Throws ConfigError.
 *
 * Each process listens on a socket of its own in the directory, and only then looks whether another
 * one answers. So of two that start at the same time, the later to look finds the earlier. The
 * socket of a killed process refuses connections at once; a frozen process still answers. Decision
 * 022 says why it isn't a file with a process ID.
 */
export async function holdDirectory(folder: string): Promise<{ close(): Promise<void> }> {
  const name = `lock-${randomBytes(8).toString("hex")}.sock`;
  probe(folder);
  const server = createServer((socket) => socket.destroy()).unref();
  const close = async () => {
    const closed = once(server, "close");
    server.close(); // This removes the socket, too.
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
  server.on("error", () => undefined); // All errors that matter were handled above.
  const others = readdirSync(folder).filter((other) => lockName.test(other) && other !== name);
  const answers = await Promise.all(others.map((other) => answersAt(folder, other)));
  // The socket may be gone because a third process looked when it was bound but didn't listen yet.
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

/**
 * Checks that the directory can be written. The ledger and the anchors are written at times when it
 * would be too late to report that they can't be.
 */
function probe(folder: string): void {
  const place = problemOfPlace(folder);
  if (place !== undefined)
    throw unusable(`${folder} can't be written (${place}): ${wayOut(place)}`);
  try {
    mkdirSync(folder, privateFolder);
    writeProbe(folder);
  } catch (error) {
    const code = codeOf(error);
    throw unusable(`${folder} can't be written (${code}): ${wayOut(code)}`);
  }
}

/**
 * Removes other users' access to our files, which a copy or a restored backup may have
 * opened to them. A directory with other files in it may be shared for a reason, so it keeps its mode.
 * Files of another user can't be changed.
 */
function tighten(at: string): void {
  try {
    const stats = statSync(at);
    const names = stats.isDirectory() ? readdirSync(at) : [];
    const ours = names.filter((name) => ourName.test(name)).map((name) => path.join(at, name));
    const isOwn = stats.uid === process.getuid?.() && ours.length === names.length;
    const isSticky = (stats.mode & 0o1000) !== 0;
    if (isOwn && !isSticky) chmodSync(at, stats.mode & (stats.isDirectory() ? 0o7700 : 0o600));
    for (const inner of ours) if (!lstatSync(inner).isSymbolicLink()) tighten(inner);
  } catch {
    // It was removed meanwhile, can't be read, or is on a file system without modes.
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

/**
 * Whether a live process has this socket. A socket that certainly belongs to a dead process is
 * removed.
 */
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
