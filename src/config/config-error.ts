/** The exit code of a process whose configuration is wrong: EX_CONFIG of sysexits.h. */
export const configExitCode = 78;

/**
 * Carries every problem of the configuration, as `NAME: what is wrong`, without any value that may
 * be secret.
 */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(["Gatehouse can't start with this configuration:", ...problems].join("\n  "));
    this.problems = problems;
  }
}
