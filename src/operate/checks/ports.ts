import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { createServer } from "node:net";
import type { Config } from "../../config/config.ts";
import { codeOf } from "../../errors.ts";
import { type Finding, ill, well } from "../../messages/finding.ts";
import { bindAddress } from "../web-server.ts";

const withinMs = 2_000;

type Answer = Pick<IncomingMessage, "statusCode" | "headers">;

/**
 * Finds what uses a port of this machine. Gatehouse itself is recognized by its answer, because
 * `doctor` is meant to run while Gatehouse does.
 */
export async function lookAtPort(
  { port, host, path }: { port: number; host: string; path: string },
  isOurs: (answer: Answer) => boolean,
): Promise<"free" | "Gatehouse" | "other" | "forbidden" | "elsewhere"> {
  if (port === 0) return "free";
  const asked = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  const request = get({ host: asked, port, path, signal: AbortSignal.timeout(withinMs) });
  try {
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    answer.destroy();
    return isOurs(answer) ? "Gatehouse" : "other";
  } catch (error) {
    const code = codeOf(error);
    if (code !== "ECONNREFUSED") return code === "EADDRNOTAVAIL" ? "elsewhere" : "other";
    return whetherFree(port, host);
  }
}

/** Opens an unused port for a moment, because only that shows whether this user may. */
async function whetherFree(port: number, host: string) {
  const server = createServer().listen({ port, host: bindAddress(host), exclusive: true });
  try {
    await once(server, "listening");
    return "free";
  } catch (error) {
    const code = codeOf(error);
    if (code === "EACCES") return "forbidden";
    return code === "EADDRNOTAVAIL" ? "elsewhere" : "other";
  } finally {
    server.close();
  }
}

export function judgePort(
  variable: string,
  port: number,
  state: Awaited<ReturnType<typeof lookAtPort>>,
) {
  if (port === 0) return well(`${variable} 0: any free port`);
  const name = variable === "API_PORT" ? `port ${port}` : `${variable} ${port}`;
  if (state === "free" || state === "Gatehouse")
    return well(`${name}: ${state === "free" ? "free" : "Gatehouse answers"}`);
  if (state === "forbidden")
    return ill(
      `${name}: this user can't open ports below 1024`,
      `Set ${variable} to a higher port, or grant CAP_NET_BIND_SERVICE.`,
    );
  if (state === "elsewhere")
    return ill(
      `${name}: this machine doesn't have that address`,
      "Name an address of this machine, or :: for all of them.",
    );
  return ill(`${name}: another program has it`, `Stop it, or set ${variable} to another port.`);
}

/** Judges the ports for probes and for Slack. The API's port is a check of its own. */
export async function judgePorts({
  ops,
  port,
  host = "::",
  slack,
}: Config): Promise<readonly Finding[]> {
  const probes = lookAtPort(
    { ...ops, path: "/healthz" },
    ({ headers }) =>
      /^application\/json; charset=utf-8$/.test(headers["content-type"] ?? "") &&
      headers["x-content-type-options"] === "nosniff",
  );
  const findings = [judgePort("OPS_PORT", ops.port, await probes)];
  if (slack.receive?.mode !== "http") return findings;
  const deliveries = lookAtPort(
    { port, host, path: "/slack/events" },
    ({ statusCode, headers }) => statusCode === 405 && headers.allow === "POST",
  );
  return [...findings, judgePort("PORT", port, await deliveries)];
}
