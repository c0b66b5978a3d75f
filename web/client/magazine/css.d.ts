/** A style sheet as text, minified by the build. */
declare module '*.css' {
  const css: string;
  // biome-ignore lint/style/noDefaultExport: what esbuild's text loader gives
  export default css;
}
