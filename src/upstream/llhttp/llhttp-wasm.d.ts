declare module 'undici/lib/llhttp/llhttp_simd-wasm.js' {
  const llhttpWasm: Uint8Array;
  export default llhttpWasm;
}

/** The parts that are used: TypeScript has these types only in its library for browsers. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, unknown>>);
    readonly exports: unknown;
  }
}
