import { describe, expect, it } from "vitest";
import { readSources, type Sources } from "./sources.ts";

/** What each room weighs at most: lines and bytes of its files, comments and blanks included. Turned down, never up. */
const rooms: Readonly<Record<string, readonly [lines: number, bytes: number]>> = {
  commands: [3_070, 125_200],
  registry: [1_390, 55_200],
  "policy, approvals": [1_290, 54_100],
  requests: [5_590, 228_700],
  jobs: [240, 9_300],
  rollouts: [960, 40_600],
  compute: [1_580, 63_800],
  inventory: [1_180, 48_700],
  attestation: [2_180, 95_500],
  verifier: [2_570, 111_200],
  audit: [1_700, 65_400],
  "digests, outages": [2_590, 109_400],
  "messages, charts": [720, 28_400],
  "slack/receive": [1_560, 61_500],
  "slack/conversation": [3_860, 170_000],
  "slack/deliver": [1_630, 67_000],
  "slack, slack/people": [1_090, 42_500],
  redis: [1_080, 42_200],
  config: [2_190, 89_800],
  log: [720, 28_800],
  start: [3_970, 170_800],
  door: [2_475, 103_700],
  "text, errors, main": [360, 14_600],
};
/** Lines that a room may stay below its number before that is turned down. */
const slack = 60;

const most = {
  files: 229,
  bytesOfAll: 1_825_300,
  scripts: 31,
  /** KEYS beside, which are counted by no one. */
  scriptArguments: 12,
  /** Scripts that unpack what they are given. */
  unpacking: 0,
};
/** The share of comments: what goes must not be why. */
const leastComments = 0.094;

const sources = readSources(["src"]);
const linesOf = (text: string) => text.split("\n").length - 1;

/** The room whose name begins the path, the longest; the rest stands by itself. */
function roomOf(path: string): string {
  const inside = path.slice("src/".length);
  const folders = Object.keys(rooms).flatMap((room) =>
    room.split(", ").map((folder) => [folder, room] as const),
  );
  const [found] = folders
    .filter(([folder]) => inside.startsWith(`${folder}/`))
    .toSorted(([a], [b]) => b.length - a.length);
  return found?.[1] ?? "text, errors, main";
}

function weigh(files: Sources): Map<string, { lines: number; bytes: number }> {
  const weights = new Map<string, { lines: number; bytes: number }>();
  for (const [path, text] of files) {
    const { lines, bytes } = weights.get(roomOf(path)) ?? { lines: 0, bytes: 0 };
    const more = { lines: lines + linesOf(text), bytes: bytes + Buffer.byteLength(text) };
    weights.set(roomOf(path), more);
  }
  return weights;
}

/** Of each script, the highest number of `ARGV`, and how it gets to them. */
function argumentsOf(files: Sources): { path: string; most: number; unpacks: number }[] {
  return [...files].map(([path, text]) => ({
    path,
    most: Math.max(0, ...[...text.matchAll(/ARGV\[(\d+)\]/g)].map(([, n]) => Number(n))),
    unpacks: [...text.matchAll(/unpack\(ARGV/g)].length,
  }));
}

describe("the weight of src", () => {
  it("is what each room may weigh, and no room has much less than its number says", () => {
    const weights = weigh(sources);
    const wrong = Object.entries(rooms).flatMap(([room, [mostLines, mostBytes]]) => {
      const { lines, bytes } = weights.get(room) ?? { lines: 0, bytes: 0 };
      if (lines > mostLines) return [`${room}: ${lines} lines, ${mostLines} at most`];
      if (bytes > mostBytes) return [`${room}: ${bytes} bytes, ${mostBytes} at most`];
      const isLight = lines < mostLines - slack;
      return isLight ? [`${room}: ${lines} lines, so turn its ${mostLines} down`] : [];
    });
    expect(wrong).toEqual([]);
  });

  it("is what all may weigh together", () => {
    const bytes = [...sources.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    expect(sources.size).toBeLessThanOrEqual(most.files);
    expect(bytes).toBeLessThanOrEqual(most.bytesOfAll);
  });

  it("doesn't fall by comments that say why", () => {
    let [all, comments] = [0, 0];
    for (const text of sources.values()) {
      all += linesOf(text);
      comments += text.split("\n").filter((line) => /^\s*(\/\/|\/?\*)/.test(line)).length;
    }
    expect(comments / all).toBeGreaterThan(leastComments);
  });
});

describe("scripts in Redis", () => {
  it("are few, and take few arguments", () => {
    const scripts = [...sources.values()].flatMap((text) => [
      ...text.matchAll(/\bdefineScript\(\s*\w+,/g),
    ]);
    expect(scripts.length).toBeLessThanOrEqual(most.scripts);
    const found = argumentsOf(sources);
    expect(found.filter((file) => file.most > most.scriptArguments)).toEqual([]);
    const unpacking = found.reduce((sum, { unpacks }) => sum + unpacks, 0);
    expect(unpacking).toBeLessThanOrEqual(most.unpacking);
  });
});
