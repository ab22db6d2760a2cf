import { createHmac, hash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { AlertSource, Policy } from "../../config/policy-file.ts";
import type { Inventory } from "../../inventory/inventory.ts";
import { channelOfProject } from "../../policy/access.ts";
import type { Meaning } from "../alerts.ts";
import { readAlerts } from "../read-alerts.ts";
import { jsonOf, Problem, type Route, unauthorized } from "./door.ts";
import type { Behind } from "./behind.ts";

const perMinute = 3_000;
/** How far from now a signed time may be, either way. */
const oldestS = 300;

/** `POST /alerts/<source>`: what a source of gatehouse.yml sends, in its own format. */
export function alertRoute({ config, alerts, gatewayNow, log, at }: Behind): Route {
  return {
    name: "alerts",
    path: /^\/alerts\/[^/]+$/,
    methods: ["POST"],
    async handle(call, named) {
      const { policy, inventory } = gatewayNow();
      const called = call.path.slice("/alerts/".length);
      const source = Object.hasOwn(policy.sources, called) ? policy.sources[called] : undefined;
      const seconds = Math.floor((await alerts.now()) / 1000);
      const proven = isGenuine(source, source ? secretsOf(called) : [], call, seconds);
      if (!source || !proven) throw unauthorized();
      await named(`source ${called}`, perMinute).catch(tooMany);
      const delivery = readAlerts(jsonOf(call.body), source);
      if ("field" in delivery) {
        const { field, text } = delivery;
        const title = `The body is not what \`format: ${source.format}\` says.`;
        throw new Problem(422, title, `${field}: ${text}`, { field });
      }
      await at?.("alert", called);
      const taken = await alerts.take(called, delivery, meaningOf(source, policy, inventory));
      await at?.("alert-kept", called);
      if (!taken) throw new Problem(503, "Too many deliveries for one group at once; repeat it.");
      log.info("alert.taken", { source: called, alert: taken.id, changed: taken.isChanged });
      return { status: 202, body: { alert: taken.id, changed: taken.isChanged } };
    },
  };

  function secretsOf(called: string): readonly string[] {
    try {
      return config.sourceSecrets(called);
    } catch (error) {
      log.error("alert.secret-unreadable", { source: called, error });
      return [];
    }
  }
}

/** Alertmanager never repeats what was answered with 429. */
function tooMany(error: unknown): never {
  if (!(error instanceof Problem) || error.status !== 429) throw error;
  throw new Problem(503, "Too many deliveries within a minute; repeat it.");
}

/** Without a source or a secret as long as with them. */
function isGenuine(
  source: AlertSource | undefined,
  secrets: readonly string[],
  { headers, body }: { headers: IncomingHttpHeaders; body: Buffer },
  nowS: number,
): boolean {
  const given = givenIn(source, headers, nowS);
  const wanted = secrets.length > 0 ? secrets : [""];
  const fitting = wanted.flatMap((secret) => {
    const right =
      given.signs !== undefined
        ? createHmac("sha256", secret).update(given.signs).update(body).digest("hex")
        : secret;
    return given.proofs.map((proof) => isSame(proof, right));
  });
  return secrets.length > 0 && fitting.includes(true);
}

const isSame = (one: string, other: string) =>
  timingSafeEqual(hash("sha256", one, "buffer"), hash("sha256", other, "buffer"));

/** What a caller proves itself by: secrets, or signatures over a text and the body. */
function givenIn(
  source: AlertSource | undefined,
  headers: IncomingHttpHeaders,
  nowS: number,
): { proofs: readonly string[]; signs?: string } {
  const header = (called: string) => String(headers[called.toLowerCase()] ?? "");
  if (source?.format === "pagerduty") {
    const all = header("x-pagerduty-signature")
      .split(",")
      .map((one) => one.trim());
    return {
      proofs: all.slice(0, 8).flatMap((one) => /^v1=([0-9a-f]{64})$/.exec(one)?.[1] ?? []),
      signs: "",
    };
  }
  if (source?.signed) {
    const signature = header("x-grafana-alerting-signature");
    const { timestampHeader } = source;
    const time = timestampHeader === undefined ? "" : header(timestampHeader);
    const isTimely =
      timestampHeader === undefined ||
      (/^\d{1,12}$/.test(time) && Math.abs(nowS - Number(time)) <= oldestS);
    return { proofs: isTimely ? [signature] : [], signs: time === "" ? "" : `${time}:` };
  }
  const [scheme = "", word = ""] = header("authorization").split(" ");
  if (/^bearer$/i.test(scheme)) return { proofs: [word] };
  const basic = /^basic$/i.test(scheme) ? Buffer.from(word, "base64").toString() : "";
  return { proofs: basic.includes(":") ? [basic.slice(basic.indexOf(":") + 1)] : [] };
}

function meaningOf({ channel }: AlertSource, policy: Policy, inventory: Inventory): Meaning {
  const find = async (words: string) => {
    const found = await inventory.findVm(words, { onlyKnown: true }).catch(() => undefined);
    return found && "found" in found ? found.found : undefined;
  };
  return {
    // `instance` is an address with a port
    vmIdOf: async (label) =>
      ((await find(label)) ?? (await find(label.replace(/:\d{1,5}$/, ""))))?.id,
    async channelOf(vmIds) {
      if (channel !== undefined) return channel;
      const vm = vmIds[0] === undefined ? undefined : await find(vmIds[0]);
      const project = vm && { id: vm.projectId, name: vm.projectName };
      return (project && channelOfProject(policy, project)) ?? policy.alerts?.channel ?? "";
    },
  };
}
