export const vendor = "C07VENDOR";
/** In gatehouse.yml: another company shares it, and Gatehouse may post there. */
export const sharedWithVendor = `sharedChannels: [${vendor}]\n`;
