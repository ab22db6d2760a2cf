import { randomBytes, randomInt } from "node:crypto";
import { createServer } from "node:http";
import { listen } from "../listen.ts";
import { createRandom } from "../random.ts";
import { type Controlled, createControl } from "./control.ts";
import { createEdits } from "./edits.ts";
import { createEndpoints } from "./endpoints.ts";
import { createJournal, type SandboxCall } from "./journal.ts";
import { createProjectOperations } from "./project-operations.ts";
import { createReceiver } from "./receive.ts";
import { type Fleet, seedDemo, seedFleet } from "./seed.ts";
import { projectTruth, type ProjectTruth, truthOf, vmTruth, type VmTruth } from "./truth.ts";
import { createVmOperations } from "./vm-operations.ts";
import { compileMatch, createWeather } from "./weather.ts";
import { createWorld, type Operation, type Span } from "./world.ts";

export interface SandboxComputeOptions {
  /** Default 0: any free one. */
  port?: number;
  /** Serves `/_sandbox/…` on a port of its own (0: any free one); not there by default. */
  controlPort?: number;
  apiKey?: string;
  /** How long states take: for all operations or one by one. Default 2 to 6 seconds. */
  transitionMs?: Span | Partial<Record<Operation, Span>>;
  /** A state between two others lasts until it was read, however short its time is. */
  isReadFirst?: boolean;
  /** For weather with a probability and for times between two bounds. Default: any; `seed` tells which it was. */
  seed?: number;
  world?: "demo" | "empty" | Fleet;
  /** Added to each call. */
  latencyMs?: number;
  perPage?: number;
  mostPerPage?: number;
  /** VM records carry `updated_at`, which the document doesn't list. */
  withUpdatedAt?: boolean;
  /** How long a console session is valid; default 5 minutes. */
  consoleMs?: number;
}

export interface SandboxCompute extends Controlled, AsyncDisposable {
  url: string;
  apiKey: string;
  /** Those that are accepted; at first `apiKey` alone. */
  keys: Set<string>;
  controlUrl: string | undefined;
  /** One VM or project, by id, name or `project/name`. */
  vm(words: string): VmTruth;
  project(words: string): ProjectTruth;
  /** Resolves once `count` (default 1) calls that match have been answered, with them; `match` as in Storm. */
  called(match: string, count?: number): Promise<SandboxCall[]>;
  close(): Promise<void>;
}

const usualSpan: Span = [2000, 6000];

/** The compute service on this machine: its whole documented interface, with states that take time and weather. */
export async function startSandboxCompute(
  options: SandboxComputeOptions = {},
): Promise<SandboxCompute> {
  const seed = options.seed ?? randomInt(2 ** 31);
  const random = createRandom(seed + 1);
  const apiKey = options.apiKey ?? `sandbox-${randomBytes(12).toString("hex")}`;
  const { transitionMs = usualSpan } = options;
  const isSpan = (value: typeof transitionMs): value is Span =>
    typeof value === "number" || Array.isArray(value);
  const msOf = (operation: Operation): number => {
    const span = isSpan(transitionMs) ? transitionMs : (transitionMs[operation] ?? usualSpan);
    return typeof span === "number" ? span : span[0] + random() * (span[1] - span[0]);
  };

  const world = createWorld();
  const kind = options.world ?? "demo";
  if (kind === "demo") seedDemo(world);
  else if (kind !== "empty") seedFleet(world, kind);
  const weather = createWeather(seed);
  const journal = createJournal();
  const edit = createEdits(world);
  const endpoints = createEndpoints({
    world,
    operations: {
      ...createVmOperations(world, msOf, options.isReadFirst),
      ...createProjectOperations(world, msOf),
    },
    perPage: options.perPage ?? 20,
    mostPerPage: options.mostPerPage ?? 100,
    withUpdatedAt: options.withUpdatedAt ?? false,
    consoleMs: options.consoleMs ?? 300_000,
  });
  const keys = new Set([apiKey]);
  const receive = createReceiver({
    keys,
    endpoints,
    weather,
    journal,
    latencyMs: options.latencyMs ?? 0,
    after: (ms, work) => world.after(ms, work),
  });
  const api = await listen(createServer(receive), options.port ?? 0);

  const writes = () => journal.calls().filter((call) => call.method !== "GET");
  const sandbox: Omit<SandboxCompute, "controlUrl" | "close" | typeof Symbol.asyncDispose> = {
    url: api.url,
    apiKey,
    keys,
    seed,
    truth: (only) => truthOf(world, only),
    vm: (words) => vmTruth(edit.findVm(words), false),
    project: (words) => projectTruth(edit.findProject(words), false),
    calls: () => journal.calls(),
    writes,
    forget: () => journal.forget(),
    called: (match, count = 1) => {
      const matches = compileMatch(match);
      return journal.until((call) => matches(call.method, call.path), count);
    },
    settled: () => world.settled(),
    weather: (storm) => weather.add(storm),
    clear: (id) => weather.clear(id),
    forecast: () => weather.list(),
    edit,
  };
  const control =
    options.controlPort === undefined
      ? undefined
      : await listen(createControl(sandbox), options.controlPort);

  async function close(): Promise<void> {
    world.close();
    await Promise.all([api.close(), control?.close()]);
  }
  return { ...sandbox, controlUrl: control?.url, close, [Symbol.asyncDispose]: close };
}
