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
  writeFileSync,
} from "node:fs";
import { connect, createServer } from "node:net";
import path from "node:path";
import { ConfigError } from "../config/config.ts";
import { within } from "../deadline.ts";
import { codeOf } from "../errors.ts";
import { privateFile, privateFolder } from "../regular-file.ts";

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
 * instant; a frozen one still answers. docs/decisions/022 tells why it isn't a file with a process ID.
 */
export async function holdDirectory(folder: string): Promise<{ close(): Promise<void> }> {
  const name = `lock-${randomBytes(8).toString("hex")}.sock`;
  probe(folder, `${name}.probe`);
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
function probe(folder: string, name: string): void {
  const file = path.join(folder, name);
  try {
    mkdirSync(folder, privateFolder);
    try {
      writeFileSync(file, "a line like those of the ledger\n", { ...privateFile, flush: true });
    } finally {
      rmSync(file, { force: true });
    }
  } catch (error) {
    const code = codeOf(error);
    throw unusable(`${folder} can't be written (${code}): ${wayOut(code)}`);
  }
}

/** What helps where a directory can't be made or written, by the code of the error. */
export function wayOut(code: string, user = process.getuid?.() ?? 0): string {
  if (code === "ENOSPC")
    return "free space on its disk, or inodes (df -h, df -i), or name a directory on another one";
  if (code === "EDQUOT") return `raise the disk quota of user ${user}, or free what counts to it`;
  if (code === "EROFS")
    return "mount its file system writable, or name another directory; in a container, give it a volume";
  if (["ENOTDIR", "EEXIST"].includes(code)) return "a part of its path is a file: name a directory";
  if (["ENOENT", "ELOOP"].includes(code))
    return "a part of its path is missing, or is a link to nothing: make it, or name another directory";
  if (code === "EIO")
    return "its disk fails: the kernel's log says how; name a directory on another one";
  if (["EACCES", "EPERM"].includes(code))
    return `let user ${user} write there (chown ${user}), or name another directory; in a container, give it a volume`;
  return "name a directory that this process may write, on a local disk with space";
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
