const oldestMajor = 26;

/** The sentence to print when this Node is too old, or undefined. Imports nothing, so that it runs on the old one too. */
export function runtimeProblem(version: string): string | undefined {
  const major = Number(/^v?(\d+)\./.exec(version)?.[1]);
  if (major >= oldestMajor) return undefined;
  return `Gatehouse needs Node.js ${oldestMajor} or newer, and this is ${version}. "npm ci" brings the right one, and "npm start" uses it.`;
}
