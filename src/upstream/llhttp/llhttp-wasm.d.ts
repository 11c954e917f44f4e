declare module 'undici/lib/llhttp/llhttp_simd-wasm.js' {
  const llhttpWasm: Uint8Array;
  export default llhttpWasm;
}

/** As much of it as we use: TypeScript has it among the types of browsers only. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, unknown>>);
    readonly exports: unknown;
  }
}
