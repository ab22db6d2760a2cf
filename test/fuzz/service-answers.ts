import type { IncomingMessage, ServerResponse } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ComputeError, type ComputeErrorKind } from "../../src/fleet/compute/compute.ts";
import { answering, clientOf, key } from "../fleet/compute/answering.ts";
import {
  createTally,
  type Fuzzed,
  type FuzzOptions,
  isPrototypeClean,
  sampled,
  type Tally,
  withHands,
} from "./fuzzed.ts";
import { type Answer, anyAnswer, type Call, mark, maxBytes } from "./service-answer-cases.ts";
import { faultIn } from "./value-faults.ts";

/** Whatever the service answers: a value that fits its schema, or a failure of a kind we know. */
export async function fuzzServiceAnswers({ cases, seed }: FuzzOptions): Promise<Fuzzed> {
  const tally = createTally();
  const byNumber = new Map<string, Answer>();
  const times = new Map<string, number>();
  await using server = await answering((request, response) => {
    const number = numberOf(request);
    times.set(number, (times.get(number) ?? 0) + 1);
    const answer = byNumber.get(number);
    if (answer) say(answer, response);
    else response.writeHead(500).end();
  });
  const before = heldBytes();
  await withHands(8, sampled(anyAnswer, { cases, seed }), async (answer, n) => {
    const number = String(n);
    byNumber.set(number, answer);
    await interaction(number, server.url, answer, tally);
    checkTimes(answer, times.get(number) ?? 0, tally);
    byNumber.delete(number);
    times.delete(number);
  });
  if (!isPrototypeClean()) tally.wrong("a prototype was changed");
  const grewBy = Math.max(0, Math.round((heldBytes() - before) / 1024 / 1024));
  if (grewBy > 40) tally.wrong(`${grewBy} MB are held after the last answer`);
  return tally.result(`${grewBy} MB more are held after the last answer than before the first`);
}

/** What is really in use, without what waits to be collected. */
function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** The base address says which case it is. */
const numberOf = (request: IncomingMessage) => request.url?.split("/")[1] ?? "";

async function interaction(
  number: string,
  url: string,
  answer: Answer,
  tally: Tally,
): Promise<void> {
  await using compute = clientOf(`${url}/${number}`, {
    timeoutMs: 60_000,
    maxResponseBytes: maxBytes,
    retryDelays: { baseMs: 0, maxMs: 0 },
  });
  tally.count();
  const began = performance.now();
  try {
    const value = await answer.call.call(compute);
    tally.accept();
    checkValue(answer, value, tally);
  } catch (error) {
    if (error instanceof ComputeError) checkFailure(answer, error, tally);
    else
      tally.crash(
        `${show(answer)}: ${error instanceof Error ? (error.stack ?? "") : String(error)}`,
      );
  }
  tally.took(performance.now() - began);
}

const isOk = ({ status }: Answer) => status >= 200 && status < 300;
const isWhole = ({ body }: Answer) =>
  body.is !== "cut" && body.is !== "broken-off" && Buffer.byteLength(body.text) <= maxBytes;
/** Something in between answered, whatever the status. */
const isPage = ({ status, type, body }: Answer) =>
  status !== 204 && (body.is === "html" || (type.includes("html") && body.is === "text"));
/** More than is read of a refusal: nobody saw whether the page ended. */
const mayBePage = (answer: Answer) =>
  isPage(answer) ||
  (answer.type.includes("html") && Buffer.byteLength(answer.body.text) > 64 * 1024);
const isSent = ({ endpoint }: Call) => !endpoint.startsWith("GET");

function checkValue(answer: Answer, value: unknown, tally: Tally): void {
  if (!isWhole(answer)) tally.wrong(`${show(answer)} was cut and became a value`);
  if (isPage(answer)) tally.wrong(`${show(answer)} is a page and became a value`);
  if (!isOk(answer)) tally.wrong(`${show(answer)} became a value`);
  const { gives } = answer.call;
  if (gives !== "accepted" && answer.body.is !== "json") tally.wrong(`${show(answer)} was read`);
  const fault = faultIn(gives, value);
  if (fault !== undefined) tally.wrong(`${show(answer)} became a value with ${fault}`);
  if (JSON.stringify(value).includes(mark))
    tally.wrong(`${show(answer)}: of the page something came through`);
}

const kinds: ReadonlySet<ComputeErrorKind> = new Set([
  "refused",
  "not-found",
  "conflict",
  "busy",
  "unreachable",
  "unclear",
  "unexpected",
]);

/** Words without which no answer says that a call failed. */
const mayComplain =
  /"[^"]*(ok|success|fail|error|err|fault|exception|code|ret|status|state|result|outcome|type)[^"]*"\s*:/i;

function checkFailure(answer: Answer, error: ComputeError, tally: Tally): void {
  const { call, status, body } = answer;
  const { kind, message, serviceMessage = "", stack = "" } = error;
  const bad = (what: string) => tally.wrong(`${show(answer)}: ${what} (${kind}: ${message})`);
  if (!kinds.has(kind)) bad("a kind that nobody knows");
  if (error.endpoint !== call.endpoint) bad(`names ${error.endpoint}`);
  if (isPage(answer) && isSent(call) && kind !== "unclear") bad("a page proves nothing");
  if (
    isSent(call) &&
    isOk(answer) &&
    isWhole(answer) &&
    !isPage(answer) &&
    call.gives === "accepted" &&
    !(error.reason === "says-failure" && kind === "unclear" && mayComplain.test(body.text))
  )
    bad("the change was accepted, and that isn't said");
  if (isSent(call) && isOk(answer) && !isWhole(answer) && kind !== "unclear")
    bad("it may have happened");
  if (
    isSent(call) &&
    (status >= 500 || status < 400 || status === 408 || status === 425) &&
    !isOk(answer) &&
    kind !== "unclear"
  )
    bad("it may have happened");
  if (isSent(call) && kind === "unreachable") bad("it was reached");
  if (!isSent(call) && kind === "unclear") bad("a read is never unclear");
  if (status === 429 && kind !== "busy" && !(isSent(call) && mayBePage(answer))) bad("is busy");
  if ([message, serviceMessage, stack, JSON.stringify(error)].some((text) => text.includes(key)))
    bad("our key is in it");
  if (message.length > 300 || serviceMessage.length > 301) bad("too long");
  if (/[\n\r\u2028\u202a-\u202e\u2066-\u2069]|\p{Cc}/u.test(serviceMessage))
    bad("more than one plain line");
  if (body.is === "html" && `${message}${serviceMessage}${stack}`.includes(mark))
    bad("of the page something came through");
  if (body.text.length > 30 && message.includes(body.text.slice(0, 30)))
    bad("the body came through");
}

function checkTimes(answer: Answer, times: number, tally: Tally): void {
  const most = isSent(answer.call) ? 1 : 4;
  if (times < 1 || times > most) tally.wrong(`${show(answer)} was asked ${times} times`);
}

const show = ({ call, status, type, body }: Answer) =>
  `${call.endpoint} answered ${status} ${type} ${body.is} ${JSON.stringify(body.text.slice(0, 200))}`;

function say({ status, type, body }: Answer, response: ServerResponse): void {
  const isBare = status === 204 || status === 304;
  const bytes = Buffer.from(body.text);
  const headers: Record<string, string> = type === "" ? {} : { "content-type": type };
  if (!isBare) headers["content-length"] = String(bytes.length + (body.is === "cut" ? 10 : 0));
  response.writeHead(status, headers);
  response.write(isBare ? "" : bytes);
  if (body.is === "cut") setImmediate(() => response.destroy());
  else response.end();
}
