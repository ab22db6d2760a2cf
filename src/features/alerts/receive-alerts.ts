import { createHmac, hash, timingSafeEqual } from "node:crypto";
import type { Policy } from "../../config/policy-file.ts";
import { sectionOf } from "../../config/policy-section.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import { alertChannel, policyPlaceOf } from "../../core/permit/access.ts";
import type { Alerts, Meaning } from "./alerts.ts";
import { type Delivery, readAlerts, shortHash } from "./read-alerts.ts";
import type { Behind } from "../../api/api-context.ts";
import { type Call, jsonOf, ApiProblem, type Route, unauthorized } from "../../api/server.ts";
import { type AlertSource, secretVariable, sourcesSection } from "./sources.ts";

const perMinute = 3_000;
/** How far a signed time may be from now, in either direction (s). */
const oldestS = 300;

/**
 * The route `POST /alerts/<source>`, to which a source of gatehouse.yml sends alerts in its own
 * format.
 */
export function alertRoute(alerts: Alerts, behind: Behind): Route {
  const { config, log, gatewayNow, at } = behind;
  return {
    name: "alerts",
    path: /^\/alerts\/[^/]+$/,
    methods: ["POST"],
    // Alertmanager doesn't repeat a delivery that was answered with 429.
    busy: 503,
    async handle(call, named) {
      const { policy, inventory } = gatewayNow();
      const arrivedAt = await alerts.now();
      const called = call.path.slice("/alerts/".length);
      const sources = sectionOf(policy, sourcesSection);
      const source = Object.hasOwn(sources, called) ? sources[called] : undefined;
      const secrets = source ? config.callerSecret(secretVariable(called)).secrets : [];
      const proven = isGenuine(source, secrets, call, arrivedAt);
      if (!source || !proven) throw unauthorized();
      await named(`sources.${called}`, perMinute);
      const read = readAlerts(jsonOf(call.body), source);
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
    },
  };
}

const tooMany = () =>
  new ApiProblem(503, "Too many deliveries for one group at once.", "Wait, then repeat it.");

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
 * Checks the caller's secret or signature. It takes as long without a source or a secret, so the
 * time gives nothing away.
 */
function isGenuine(
  source: AlertSource | undefined,
  secrets: readonly string[],
  call: Call,
  now: number,
): boolean {
  const { proofs, signs } = givenIn(source, call.headers, now);
  const fitting = (secrets.length > 0 ? secrets : [""]).flatMap((secret) => {
    const signed = createHmac("sha256", secret).update(`${signs}`).update(call.body).digest("hex");
    const right = signs === undefined ? secret : signed;
    return proofs.map((proof) => timingSafeEqual(digestOf(proof), digestOf(right)));
  });
  return secrets.length > 0 && fitting.includes(true);
}

const digestOf = (text: string) => hash("sha256", text, "buffer");

/** What a caller proves itself with: secrets, or signatures over `signs` and the body. */
function givenIn(
  source: AlertSource | undefined,
  headers: Call["headers"],
  now: number,
): { proofs: readonly string[]; signs?: string } {
  const header = (called: string) => String(headers[called.toLowerCase()] ?? "");
  if (source?.format === "pagerduty") {
    const all = header("x-pagerduty-signature").split(/\s*,\s*/);
    const proofs = all.slice(0, 8).flatMap((one) => /^v1=([0-9a-f]{64})$/.exec(one)?.[1] ?? []);
    return { proofs, signs: "" };
  }
  if (source?.signed) {
    const proofs = [header("x-grafana-alerting-signature")];
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
    const found = await inventory.findVm(words, { onlyKnown: true }).catch(() => undefined);
    return found && "found" in found ? found.found : undefined;
  };
  return {
    // The label `instance` is an address with a port, so look again without the port.
    async vmIdOf(label) {
      return ((await find(label)) ?? (await find(label.replace(/:\d{1,5}$/, ""))))?.id;
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
