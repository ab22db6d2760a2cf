import { limits } from "./limits.ts";

/** `value` contains IDs only, and authorizes nothing. */
export interface ButtonSpec {
  label: string;
  /** What it is about, unless the label says so: screen readers hear `Show train-7`, not nine times “Show”. */
  about?: string | undefined;
  action: string;
  value: string;
  style?: "primary" | "danger";
  confirm?: ConfirmSpec;
  /** The address that it opens in the browser (`linkButton`). Such a button runs nothing. */
  url?: string;
}

/** The family of the buttons that open an address. Slack reports their presses, which are only acknowledged. */
export const linkFamily = "link";

/** A button that opens an address. `kind` tells it from other links of its message. */
export const linkButton = (label: string, kind: string, url: string): ButtonSpec => ({
  label,
  action: `${linkFamily}:${kind}`,
  value: "",
  url,
});

/** Slack's confirm dialog. It protects from slips and proves nothing. */
export interface ConfirmSpec {
  title: string;
  text: string;
  confirm: string;
  style?: "primary" | "danger";
}

/**
 * In a menu, one action ID stands for all options, so the value of each option also says what it
 * does.
 */
export const valueInMenu = ({ action, value }: ButtonSpec) =>
  JSON.stringify({ do: action, ...(JSON.parse(value) as object) });

/**
 * Whether these buttons can be shown as one menu. Slack limits the length of an option's value, and
 * a confirm dialog applies to a whole menu or not at all.
 */
export function fitsMenu(specs: readonly ButtonSpec[]): boolean {
  const fits = (spec: ButtonSpec) => !spec.confirm && valueInMenu(spec).length <= limits.menuValue;
  return specs.length <= limits.menu && specs.every(fits);
}
