import { readdirSync } from "node:fs";
import type { Example } from "./example.ts";

const folder = new URL("examples/", import.meta.url);

/** The examples of one file: of a feature, or of a part of the core. */
export interface ExampleGroup {
  group: string;
  examples: readonly Example[];
}

/**
 * One example or more of everything that Gatehouse tells. A feature's are in a file that has the
 * name of its folder, so that they go with it.
 */
export async function readExamples(): Promise<readonly ExampleGroup[]> {
  const files = readdirSync(folder).toSorted();
  return Promise.all(
    files.map(async (file) => {
      const { examples } = (await import(new URL(file, folder).href)) as Omit<
        ExampleGroup,
        "group"
      >;
      return { group: file.replace(/\.ts$/, ""), examples };
    }),
  );
}
