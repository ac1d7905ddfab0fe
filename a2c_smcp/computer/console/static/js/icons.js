// Small line drawings, all on a grid of 20.
import { html } from "./html.js";

const PATHS = {
  decisions: "M10 2.5l6 2.2v4.6c0 4-2.6 6.7-6 8.2-3.4-1.5-6-4.2-6-8.2V4.700zM7.300 10l2 2 3.600-4",
  calls: "M3 10h3l2-5 4 10 2-5h3",
  servers: "M3.500 4h13v5h-13zM3.500 11h13v5h-13zM6 6.500h.01M6 13.500h.01",
  tools: "M12.200 4.300a3.600 3.600 0 0 0 3.500 5.200l-7 7-2.700-2.700 7-7a3.600 3.600 0 0 0-5.200-3.500",
  desktop: "M2.500 4h15v9.500h-15zM7 17h6M10 13.500V17",
  finder: "M5 2.500h6.500L15.500 6.500V17.500H5zM11.500 2.500v4h4M7.500 10.500h5.500M7.500 13.500h5.500",
  office: "M3.500 17V6.500L10 3l6.500 3.500V17M2.500 17h15M8 17v-4h4v4M7.500 9h.01M12.500 9h.01",
  chevron: "M7.500 5l5 5-5 5",
  back: "M12.500 5l-5 5 5 5",
  close: "M5.500 5.500l9 9M14.500 5.500l-9 9",
  check: "M4.500 10.500l3.500 3.500 7.500-8",
  clock: "M10 3a7 7 0 1 0 .01 0M10 6.500V10l2.500 1.500",
  search: "M9 4a5 5 0 1 0 .01 0M12.800 12.800L16.500 16.500",
  link: "M8.500 11.500l3-3M7 9l-2.300 2.300a2.900 2.900 0 0 0 4 4L11 13M9 7l2.300-2.300a2.900 2.900 0 0 1 4 4L13 11",
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false"><path d=${PATHS[name]} /></svg>`;
}
