import { createHmac, hash, timingSafeEqual } from "node:crypto";
import type { Policy } from "../../config/policy-file.ts";
import { sectionOf } from "../../config/policy-section.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import { alertChannel, policyPlaceOf } from "../../core/permit/access.ts";
import type { Alerts, Meaning } from "./alerts.ts";
import { type Delivery, readAlerts, shortHash } from "./read-alerts.ts";
import type { Behind } from "../../api/api-context.ts";
import {
  ApiProblem,
  type Call,
  CutBody,
  type Route,
  jsonOf,
  problemOf,
  unauthorized,
} from "../../api/server.ts";
import type { Refusals } from "./refusals.ts";
import { type AlertSource, secretVariable, sourcesSection } from "./sources.ts";

const perMinute = 3_000;
/**
 * The largest delivery of a proven source (bytes). Alertmanager and Grafana send a group whole, and
 * an alert with the labels and annotations of kube-prometheus is about 1.1 kB.
 */
const mostBytes = 4 * 1024 * 1024;
/** How far a signed time may be from now, in either direction (s). */
const oldestS = 300;

/**
 * The route `POST /alerts/<source>`, to which a source of gatehouse.yml sends alerts in its own
 * format. Once a source is proven, every delivery is taken, or people are told that it was refused.
 */
export function alertRoute(alerts: Alerts, refusals: Refusals, behind: Behind): Route {
  const { config, log, gatewayNow, at } = behind;

  async function take(called: string, source: AlertSource, call: Call, body: Buffer) {
    const { policy, inventory } = gatewayNow();
    const arrivedAt = await alerts.now();
    const read = readAlerts(jsonOf(body), source);
    if ("field" in read) {
      const { field, text } = read;
      const title = `The body is not what \`format: ${source.format}\` says.`;
      throw new ApiProblem(422, title, `${field}: ${text}`, { field });
    }
    const delivery = { ...read, ...sentBy(call, read, source), arrivedAt };
    await at?.("alert", called);
    const taken = await alerts.take(called, delivery, meaningOf(source, policy, inventory));
    await at?.("alert-kept", called);
    if (!taken) throw tooMany();
    log.info("alert.taken", { source: called, alert: taken.id, changed: taken.isChanged });
    return { status: 202, body: { alert: taken.id, changed: taken.isChanged } };
  }

  return {
    name: "alerts",
    path: /^\/alerts\/[^/]+$/,
    methods: ["POST"],
    // Alertmanager doesn't repeat a delivery that was answered with 429.
    busy: 503,
    async handle(call, named) {
      const called = call.path.slice("/alerts/".length);
      const sources = sectionOf(gatewayNow().policy, sourcesSection);
      const source = Object.hasOwn(sources, called) ? sources[called] : undefined;
      const secrets = source ? config.callerSecret(secretVariable(called)).secrets : [];
      // Without Redis nothing is taken, but a proven source is still told so.
      const now = await alerts.now().catch(() => Date.now());
      const given = givenIn(source, call.headers, now);
      const isProven = given.signs === undefined && isGenuine(secrets, given);
      const signed = isProven ? undefined : await signedBody(call);
      if (!source || !(isProven || (signed && isGenuine(secrets, given, signed))))
        throw unauthorized();
      try {
        await named(`sources.${called}`, perMinute);
        const body = signed ?? (await call.readBody({ mostBytes, isProven }));
        const answered = await take(called, source, call, body);
        await refusals.forget(called);
        return answered;
      } catch (error) {
        // Whoever disconnected, or was answered 5xx, sends the delivery again.
        const problem = problemOf(error);
        const isRepeated = problem.status >= 500 || problem instanceof CutBody;
        await refusals.note(called, problem, { isRepeated });
        throw error;
      }
    },
  };
}

const tooMany = () =>
  new ApiProblem(503, "Too many deliveries for one group at once.", "Wait, then repeat it.");

/**
 * The body of a call with a signature, which covers it. A call without one proves nothing, so its
 * body isn't read. Whether the named source exists makes no difference.
 */
async function signedBody({ headers, readBody }: Call): Promise<Buffer> {
  if (signatureHeaders.every((header) => headers[header] === undefined)) throw unauthorized();
  return readBody({ mostBytes });
}

/**
 * Peers of a source may share one `externalURL`, so the caller's address is part of the sender too.
 * The sender only orders deliveries; the secret proves who sent them.
 */
function sentBy({ headers, from }: Call, { sender = "", sentAt }: Delivery, source: AlertSource) {
  const [forwarded = ""] = String(headers["x-forwarded-for"] ?? "").split(",");
  const signedAt = source.timestampHeader && headers[source.timestampHeader.toLowerCase()];
  const at = source.signed && signedAt ? Number(signedAt) * 1000 : sentAt;
  const peer = shortHash(sender, forwarded.trim() || from);
  return { sender: peer, ...(at === undefined ? {} : { sentAt: at }) };
}

/**
 * Checks the caller's secret, or its signature over the body. It takes as long without a secret, so
 * the time gives nothing away.
 */
function isGenuine(
  secrets: readonly string[],
  { proofs, signs }: Given,
  body: Buffer = Buffer.alloc(0),
): boolean {
  const fitting = (secrets.length > 0 ? secrets : [""]).flatMap((secret) => {
    const signed = createHmac("sha256", secret).update(`${signs}`).update(body).digest("hex");
    const right = signs === undefined ? secret : signed;
    return proofs.map((proof) => timingSafeEqual(digestOf(proof), digestOf(right)));
  });
  return secrets.length > 0 && fitting.includes(true);
}

const digestOf = (text: string) => hash("sha256", text, "buffer");

/** What a caller proves itself with: secrets, or signatures over `signs` and the body. */
interface Given {
  proofs: readonly string[];
  signs?: string;
}

const [pagerdutySignature, grafanaSignature] = [
  "x-pagerduty-signature",
  "x-grafana-alerting-signature",
];
const signatureHeaders = [pagerdutySignature, grafanaSignature];

function givenIn(source: AlertSource | undefined, headers: Call["headers"], now: number): Given {
  const header = (called: string) => String(headers[called.toLowerCase()] ?? "");
  if (source?.format === "pagerduty") {
    const all = header(pagerdutySignature).split(/\s*,\s*/);
    const proofs = all.slice(0, 8).flatMap((part) => /^v1=([0-9a-f]{64})$/.exec(part)?.[1] ?? []);
    return { proofs, signs: "" };
  }
  if (source?.signed) {
    const proofs = [header(grafanaSignature)];
    if (source.timestampHeader === undefined) return { proofs, signs: "" };
    const time = header(source.timestampHeader);
    const isTimely = /^\d{1,12}$/.test(time) && Math.abs(now / 1000 - Number(time)) <= oldestS;
    return { proofs: isTimely ? proofs : [], signs: `${time}:` };
  }
  const [, scheme = "", word = ""] = /^(bearer|basic) (.+)$/i.exec(header("authorization")) ?? [];
  if (scheme.toLowerCase() === "bearer") return { proofs: [word] };
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(word, "base64").toString()) ?? [];
  return { proofs: password === undefined ? [] : [password] };
}

function meaningOf({ channel }: AlertSource, policy: Policy, inventory: Inventory): Meaning {
  const find = async (words: string) => {
    const match = await inventory.findVm(words, { onlyKnown: true }).catch(() => undefined);
    return match && "record" in match ? match.record : undefined;
  };
  return {
    // The label `instance` is an address with a port, so look again without the port.
    async vmOf(label) {
      const vm = (await find(label)) ?? (await find(label.replace(/:\d{1,5}$/, "")));
      return vm && { id: vm.id, project: { id: vm.projectId, name: vm.projectName } };
    },
    async channelOf([first]) {
      if (channel !== undefined) return channel;
      const vm = first === undefined ? undefined : await find(first);
      const project = vm && { id: vm.projectId, name: vm.projectName };
      const place = project ? policyPlaceOf(policy, project) : "access";
      // Alerts of a team that has no channel go to the audit channel, because others read `alerts`.
      return alertChannel(policy, place) ?? policy.audit?.channel ?? "";
    },
  };
}
