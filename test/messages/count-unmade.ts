// A worker: what other tests ran before would hide what the examples leave out.
import { readFileSync, readdirSync } from "node:fs";
import { Session } from "node:inspector/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parentPort } from "node:worker_threads";
import { root } from "../structure/sources.ts";

/** What makes messages and forms. */
const makers = ["card", "sentence", "listing", "rowsOverTable", "modal"];

/** Where a file calls one of them that it imports. */
function callsIn(text: string): readonly number[] {
  const imports = [...text.matchAll(/import \{([^}]*)\} from "[^"]*(?:card|views)\.ts"/g)];
  const names = imports.flatMap(([, list = ""]) => list.split(",").map((one) => one.trim()));
  const called = makers.filter((maker) => names.includes(maker));
  if (called.length === 0) return [];
  const calls = new RegExp(`(?<![\\w.])(?:${called.join("|")})\\(`, "g");
  return [...text.matchAll(calls)].map(({ index }) => index);
}

/** Each place in `src` that makes a message or a form: its file, and where it stands in it. */
function makingPlaces(): readonly { file: string; at: number }[] {
  const files = readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith("messages/"))
    .map((file) => `src/${file}`);
  return files.toSorted().flatMap((file) => {
    const text = readFileSync(path.join(root, file), "utf8");
    return callsIn(text).map((at) => ({ file, at }));
  });
}

/**
 * Counts the places of each file that make no message while all examples are made. V8 counts how
 * often each block of code ran; Node.js takes types off without moving anything.
 */
async function countUnmade(): Promise<Record<string, number>> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  const { readExamples } = await import("../../demo/cards/index.ts");
  const { usual } = await import("../../demo/cards/example.ts");
  for (const { examples } of await readExamples())
    for (const { make } of examples) await make(usual);
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const scripts = new Map(result.map((script) => [script.url, script]));
  const isMade = ({ file, at }: { file: string; at: number }) => {
    const { href } = pathToFileURL(path.join(root, file));
    const around = (scripts.get(href)?.functions ?? [])
      .flatMap(({ ranges }) => ranges)
      .filter(({ startOffset, endOffset }) => startOffset <= at && at < endOffset);
    const [innermost] = around.toSorted(
      (a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset),
    );
    return innermost !== undefined && innermost.count > 0;
  };
  const unmade = makingPlaces().filter((place) => !isMade(place));
  const byFile = Map.groupBy(unmade, ({ file }) => file);
  return Object.fromEntries([...byFile].map(([file, places]) => [file, places.length]));
}

parentPort?.postMessage(await countUnmade());
