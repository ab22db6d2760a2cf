import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { releaseFile } from "./release.ts";

/**
 * Packs what runs of a released version, so that tests can start it beside this one:
 *
 *     node test/upgrade/make-release.ts COMMIT NAME
 *
 * Beside the sources it holds that version's own test build of one process, by which tests start and kill it.
 */
const [commit = "", name = ""] = process.argv.slice(2);
const packed = ["src", "gatehouse.mjs", "package.json", "test/faults/stage/bot.ts"];
const archive = execFileSync("git", ["archive", "--format=tar", commit, ...packed], {
  maxBuffer: 64 * 1024 * 1024,
});
const bytes = gzipSync(archive, { level: 9 });
writeFileSync(releaseFile(name), bytes);
process.stdout.write(`${releaseFile(name)}: ${bytes.length} bytes\n`);
