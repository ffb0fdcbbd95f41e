// In the live frame, before the studio's page: one pixel of the canvas is one pixel of the painting on every screen.
"use strict";
Object.defineProperty(window, "devicePixelRatio", { value: 1 });
