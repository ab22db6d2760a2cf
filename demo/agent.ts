import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

type Answer = Awaited<ReturnType<Client["callTool"]>>;

/** An agent with its service's token, by the SDK's own client: in the protocol of 2026-07-28, or by the handshake of 2025. */
export async function connectAgent(
  url: string,
  how: { mode?: "legacy" | { pin: string }; bearer?: string } = {},
): Promise<Client & AsyncDisposable> {
  const { mode = { pin: "2026-07-28" }, bearer } = how;
  const client = new Client(
    { name: "sandbox-agent", version: "1" },
    { versionNegotiation: { mode } },
  );
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }),
  );
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}

/** What a tool answered, in words. */
export const textOf = ({ content }: Answer): string =>
  content.map((one) => (one.type === "text" ? one.text : "")).join("\n");

/** The same without the marks around what is data. */
export const dataOf = (answer: Answer): string =>
  /\n\[(data-\w+)\]\n([^]*)\n\[\/\1\]$/.exec(textOf(answer))?.[2] ?? textOf(answer);
