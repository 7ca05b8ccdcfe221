// Loading: check every tensor against the architecture's list of weights, then hand the bytes to the device.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "base/checked.h"
#include "base/cpu_features.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "model/model.h"
#include "model/tensor_check.h"
#include "quant/quant.h"

namespace quipu {
namespace {

/// Rows are handed over in pieces of about this size, whole panels of 16 rows each.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr std::size_t kRowAlignment = 16;

/// A run of rows of one matrix.
struct Piece {
  std::size_t slab, first_row, n_rows;
};

/// How a weight's rows are cut into pieces. Vectors are one row an element.
std::vector<Piece> pieces_of(const Weight& weight) {
  if (weight.role == WeightRole::vector) return {{0, 0, weight.shape.dim(0) * weight.shape.row_elements()}};
  const std::size_t rank = weight.shape.rank();
  const std::size_t n_slabs = rank == 3 ? weight.shape.dim(0) : 1;
  const std::size_t n_rows = weight.shape.dim(rank - 2);
  const std::size_t bytes = row_bytes(weight.type, weight.shape.last());
  const std::size_t step =
      std::max(kRowAlignment, kPieceBytes / std::max<std::size_t>(bytes, 1) / kRowAlignment * kRowAlignment);
  std::vector<Piece> pieces;
  for (std::size_t slab = 0; slab < n_slabs; ++slab) {
    for (std::size_t row = 0; row < n_rows; row += step)
      pieces.push_back({slab, row, std::min(step, n_rows - row)});
  }
  return pieces;
}

/// Calls work(i) for i in [0, n) on all threads; the first exception is thrown again here.
template <typename Work>
void for_each_parallel(WorkerPool& pool, std::size_t n, Work work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  pool.run(pool.size(), [&](unsigned) {
    for (;;) {
      const std::size_t i = next.fetch_add(1);
      if (i >= n) return;
      try {
        work(i);
      } catch (...) {
        next.store(n);
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

class ModelLoader {
 public:
  ModelLoader(const gguf::Reader& reader, bool in_place, const ModelLoadOptions& options)
      : reader_(reader), in_place_(in_place), options_(options), pool_(available_cpus()) {}

  std::shared_ptr<const LoadedModel> load() {
    const gguf::Metadata& metadata = reader_.metadata();
    if (metadata.get_string("general.architecture") == nullptr) {
      fail(ErrorCode::bad_file, "{}: key 'general.architecture' is missing", reader_.origin());
    }
    Vocab vocab = Vocab::load(metadata);
    Hparams hparams = read_hparams(metadata, vocab.size());
    model_.reset(new LoadedModel(metadata, std::move(hparams), std::move(vocab),
                                 options_.without_data ? Backing::none : Backing::memory));
    const std::vector<WeightSpec> specs = list_weights(model_->hparams_, model_->weights_);
    const TensorReport report = check_tensors(reader_, model_->hparams_, specs);
    if (!report.problems.empty()) throw report.problems.front();
    warn_of_unknown(report.unknown);
    for (const FoundWeight& weight : report.weights) total_bytes_ += weight.tensor->bytes;
    for (const FoundWeight& weight : report.weights) load_weight(weight);
    if (!options_.without_data) check_rope_factors();
    return std::move(model_);
  }

 private:
  void warn_of_unknown(const std::vector<std::string_view>& names) const {
    if (!names.empty()) log_warning("{}: tensor '{}' is not used", reader_.origin(), names.front());
    if (names.size() > 1) log_warning("{}: {} tensors in all are not used", reader_.origin(), names.size());
  }

  void load_weight(const FoundWeight& found) {
    const WeightSpec& spec = *found.spec;
    const gguf::TensorInfo& tensor = *found.tensor;
    std::unique_ptr<WeightStorage> storage;
    try {
      storage = model_->device_->create_weight(tensor.type, spec.role, found.shape);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("{}: tensor '{}': {}", reader_.origin(), spec.name, error.message()));
    }
    auto weight =
        std::make_unique<Weight>(Weight{spec.name, tensor.type, spec.role, found.shape, storage.get()});
    if (!options_.without_data) copy_rows(*weight, tensor, *storage);
    *spec.slot = weight.get();
    model_->weight_list_.push_back(std::move(weight));
    model_->storages_.push_back(std::move(storage));
    model_->n_params_ += tensor.n_elements;
    model_->file_bytes_ += tensor.bytes;
    report_progress(tensor);
  }

  void copy_rows(const Weight& weight, const gguf::TensorInfo& tensor, WeightStorage& storage) {
    const std::size_t rank = weight.shape.rank();
    const bool is_vector = weight.role == WeightRole::vector;
    const std::size_t bytes_per_row = row_bytes(tensor.type, is_vector ? 1 : weight.shape.last());
    const std::size_t rows_per_slab = is_vector ? 0 : weight.shape.dim(rank - 2);
    const std::vector<Piece> pieces = pieces_of(weight);
    for_each_parallel(pool_, pieces.size(), [&](std::size_t i) {
      const Piece& piece = pieces[i];
      const std::size_t offset = (piece.slab * rows_per_slab + piece.first_row) * bytes_per_row;
      const std::size_t n_bytes = piece.n_rows * bytes_per_row;
      if (in_place_) {
        storage.set_rows(piece.slab, piece.first_row, reader_.data(tensor).subspan(offset, n_bytes));
      } else {
        std::vector<std::byte> bytes(n_bytes);
        reader_.read_data(tensor, offset, bytes);
        storage.set_rows(piece.slab, piece.first_row, bytes);
      }
    });
    if (in_place_) reader_.release(tensor);
  }

  void report_progress(const gguf::TensorInfo& tensor) {
    loaded_bytes_ += tensor.bytes;
    if (!options_.progress) return;
    const float share =
        total_bytes_ == 0
            ? 1.0f
            : static_cast<float>(static_cast<double>(loaded_bytes_) / static_cast<double>(total_bytes_));
    if (!options_.progress(share))
      fail(ErrorCode::invalid_argument, "{}: loading was cancelled", reader_.origin());
  }

  void check_rope_factors() const {
    const ModelWeights& weights = model_->weights_;
    for (const Weight* factors :
         {weights.rope_factors, weights.rope_factors_short, weights.rope_factors_long}) {
      if (factors == nullptr) continue;
      for (const float factor : read_numbers(*factors)) {
        if (!(factor > 0))
          fail(ErrorCode::bad_file, "{}: tensor '{}' holds {}, not above 0", reader_.origin(), factors->name,
               factor);
      }
    }
  }

  const gguf::Reader& reader_;
  bool in_place_;
  const ModelLoadOptions& options_;
  WorkerPool pool_;
  std::unique_ptr<LoadedModel> model_;
  std::uint64_t total_bytes_ = 0, loaded_bytes_ = 0;
};

std::shared_ptr<const LoadedModel> LoadedModel::load(const std::filesystem::path& path,
                                                     const ModelLoadOptions& options) {
  const auto mode = options.use_mmap ? gguf::ReadMode::mapped : gguf::ReadMode::read;
  const gguf::Reader reader = gguf::Reader::open(path, mode);
  return ModelLoader(reader, options.use_mmap, options).load();
}

std::shared_ptr<const LoadedModel> LoadedModel::load(std::span<const std::byte> bytes,
                                                     const std::string& origin,
                                                     const ModelLoadOptions& options) {
  const gguf::Reader reader = gguf::Reader::from_memory(bytes, origin);
  return ModelLoader(reader, true, options).load();
}

}  // namespace quipu
